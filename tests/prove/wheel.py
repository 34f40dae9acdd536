"""The wheel is installed with each extra in a clean environment, and what the extra is for is there.

Offline, from what uv has cached; extras that are not all in the cache are named. With `PATRA_PROVE_ONLINE=1` they are
fetched from pip's index, and none may be missing.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from functools import cache
from pathlib import Path

from patra.app.doctor import EXTRAS

ROOT = Path(__file__).parents[2]
UV = ROOT / ".dev" / "uv" / "bin" / "uv"


class UnavailableError(Exception):
    """uv, the build backend or a cached package cannot be had here; the text says which."""


def extras() -> list[str]:
    """The extras that the distribution declares."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    return sorted(declared)


def build_wheel(folder: Path) -> Path:
    """A wheel, built from a copy of what the build reads."""
    copy, out = folder / "source", folder / "wheel"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    built = _run([_uv(), "build", "--wheel", "--out-dir", str(out), str(copy)])
    if built.returncode and "hatchling" in built.stderr:
        raise UnavailableError(f"the build backend cannot be had: {built.stderr[-300:]}")
    assert built.returncode == 0, built.stderr
    (wheel,) = out.glob("*.whl")
    return wheel


def install(wheel: Path, extra: str, folder: Path) -> Path:
    """A new environment with the wheel and one extra (none for an empty name); gives its folder of programs."""
    environment = folder / (extra or "plain")
    made = _run([_uv(), "venv", "--quiet", "--python", sys.executable, str(environment)])
    assert made.returncode == 0, made.stderr
    programs = environment / "bin"
    wanted = f"patra[{extra}] @ {wheel.as_uri()}" if extra else f"patra @ {wheel.as_uri()}"
    pinned = folder / "constraints.txt"
    pinned.write_text("\n".join(_pins()), "utf-8")
    words = [
        "pip",
        "install",
        "--quiet",
        *_offline(),
        "--python",
        str(programs / "python"),
        "--constraint",
        str(pinned),
    ]
    installed = _run([_uv(), *words, wanted])
    if installed.returncode and "cache" in installed.stderr:
        raise UnavailableError(f"not all of it is in uv's cache: {installed.stderr.strip()[:400]}")
    assert installed.returncode == 0, installed.stderr
    return programs


def modules_there(programs: Path) -> set[str]:
    """The extras whose module can be imported in an environment."""
    program = "import importlib.util as u, sys\nfor n in sys.argv[1:]:\n    try: print(n, u.find_spec(n) is not None)\n"
    program += "    except ModuleNotFoundError: print(n, False)\n"
    names = {module: extra for extra, (module, _) in EXTRAS.items()}
    done = _run([str(programs / "python"), "-I", "-c", program, *names])
    assert done.returncode == 0, done.stderr
    return {names[line.split()[0]] for line in done.stdout.splitlines() if line.endswith("True")}


def run_patra(programs: Path, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """The installed command, in a folder of its own, without any setting of this process."""
    return _run([str(programs / "patra"), *words], folder)


def _run(words: list[str], folder: Path | None = None) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PATRA_", "PYTHON", "VIRTUAL_"))}
    return subprocess.run(words, capture_output=True, text=True, cwd=folder, env=_index() | kept)


@cache
def _index() -> dict[str, str]:
    """The index of pip, under which uv has cached what `./dev` installed; nothing is fetched from it."""
    words = [shutil.which("python3") or sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    found = subprocess.run(words, capture_output=True, text=True).stdout.strip()
    return {"UV_DEFAULT_INDEX": found} if found else {}


def _uv() -> str:
    found = str(UV) if UV.exists() else shutil.which("uv")
    if found is None:
        raise UnavailableError("uv is not here; ./dev brings it")
    return found


def _offline() -> list[str]:
    return [] if os.environ.get("PATRA_PROVE_ONLINE") else ["--offline"]


def _pins() -> list[str]:
    """The locked versions, without their hashes: what this checkout is tested with."""
    lines = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    return [line.removesuffix("\\").strip() for line in lines if line[:1].isalnum() and "==" in line]


def main() -> str:
    missing: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build_wheel(folder)
        for extra in ["", *extras()]:
            place = folder / f"tried-{extra}"
            place.mkdir()
            try:
                programs = install(wheel, extra, place)
            except UnavailableError:
                if not extra or not _offline():
                    raise
                missing.append(extra)
                continue
            assert modules_there(programs) == ({extra} if extra else set()), extra
            for words in (["--version"], ["migrate"], ["audit"], ["ingest", "pack", "check", "--help"]):
                done = run_patra(programs, place, *words)
                assert done.returncode == 0, (extra, words, done.stderr)
            print(f"   patra[{extra}]" if extra else "   patra", flush=True)
            shutil.rmtree(place)
    left = f"; not in uv's cache and not tried: {', '.join(missing)}" if missing else ""
    return f"none, and {len(extras()) - len(missing)} of {len(extras())} extras{left}"
