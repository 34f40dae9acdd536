"""`./dev licences`: which packages Patra brings, under which licences (docs/reference/licences.md), and an SBOM.

The packages are those that `pip install 'patra[EXTRA,…]'` brings, as far as this environment has them; versions and
licences come from pip-licenses, hashes from requirements.lock. The SBOM is CycloneDX 1.6, in build/sbom.json.
"""
# ruff: noqa: E501, INP001  lines of a page; a script beside conf.py

import json
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "licences.md"
SBOM = ROOT / "build" / "sbom.json"
EXTRAS = ("postgres", "redis", "nats", "parquet", "s3", "otel", "keyring", "studio")
NOTES = {
    "imageio-ffmpeg": "brings a build of **ffmpeg, which is GPL**; run as a program of its own, never linked",
    "espeakng-loader": "brings **eSpeak NG, which is GPL-3.0-or-later**; loaded only where the studio speaks",
}
INTRO = """\
# Licences

Patra itself is under the licence in the file LICENSE. This page is written by `./dev licences` from the locked dependencies, with an SBOM
(CycloneDX) in `build/sbom.json`; `./dev audit` asks for known vulnerabilities where its data can be reached.

Two packages bring programs under the GPL: **ffmpeg** (by `imageio-ffmpeg`) and **eSpeak NG** (GPLv3, by `espeakng-loader`). Both belong to the
extra `studio` alone and are kept apart: an installation without `patra[studio]` has neither, and nothing else in Patra uses them. A person who hands
on an image or a bundle with the studio hands these on, too, and has to keep to their licences.

"""


def closure(extras: tuple[str, ...]) -> dict[str, set[str]]:
    """Package names, each with the extras that bring it; no extra stands for Patra itself."""
    found: dict[str, set[str]] = {}
    for extra in ("", *extras):
        todo = [("patra", extra)]
        while todo:
            name, wanted = todo.pop()
            for text in _requires(name):
                need = Requirement(text)
                if need.marker is not None and not need.marker.evaluate({"extra": wanted}):
                    continue
                child = canonicalize_name(need.name)
                if extra in found.setdefault(child, set()):
                    continue
                found[child].add(extra)
                todo += [(child, more) for more in ("", *need.extras)]
    return {name: extras for name, extras in found.items() if _version(name)}


def _requires(name: str) -> list[str]:
    try:
        return distribution(name).requires or []
    except PackageNotFoundError:
        return []


def _version(name: str) -> str:
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return ""


def licences(names: list[str]) -> dict[str, dict[str, str]]:
    command = [
        str(Path(sys.executable).with_name("pip-licenses")),
        "--format=json",
        "--with-urls",
        "--packages",
        *names,
    ]
    told = subprocess.run(command, capture_output=True, check=True, text=True)  # noqa: S603  a tool of the lock
    return {canonicalize_name(row["Name"]): row for row in json.loads(told.stdout)}


def hashes() -> dict[str, list[str]]:
    text = (ROOT / "requirements.lock").read_text("utf-8")
    return {
        canonicalize_name(name): re.findall(r"--hash=sha256:([0-9a-f]{64})", block)
        for name, block in re.findall(r"^([A-Za-z0-9._-]+)==[^\n]*\n((?:    .*\n?)*)", text, re.MULTILINE)
    }


def page(found: dict[str, set[str]], rows: dict[str, dict[str, str]]) -> str:
    lines = ["| package | version | licence | part of | |", "|---|---|---|---|---|"]
    for name in sorted(found):
        row = rows.get(name, {})
        part = "patra" if "" in found[name] else ", ".join(f"`{extra}`" for extra in sorted(found[name]))
        licence = " ".join(row.get("License", "unknown").split()).replace("|", "/")
        lines.append(f"| {name} | {_version(name)} | {licence} | {part} | {NOTES.get(name, '')} |")
    return INTRO + "\n".join(lines) + "\n"


def sbom(found: dict[str, set[str]], rows: dict[str, dict[str, str]]) -> dict[str, Any]:
    locked = hashes()
    components = [
        {
            "type": "library",
            "name": name,
            "version": _version(name),
            "purl": f"pkg:pypi/{name}@{_version(name)}",
            "licenses": [{"license": {"name": rows.get(name, {}).get("License", "unknown")}}],
            "hashes": [{"alg": "SHA-256", "content": one} for one in locked.get(name, [])],
        }
        for name in sorted(found)
    ]
    tool = {"type": "application", "name": "patra", "version": _version("patra")}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": tool},
        "components": components,
    }


def main() -> None:
    found = closure(EXTRAS)
    rows = licences(sorted(found))
    PAGE.write_text(page(found, rows), "utf-8")
    SBOM.parent.mkdir(exist_ok=True)
    SBOM.write_text(json.dumps(sbom(found, rows), indent=1) + "\n", "utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}, {SBOM.relative_to(ROOT)}: {len(found)} packages\n")


if __name__ == "__main__":
    main()
