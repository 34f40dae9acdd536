"""`./dev prove [--list] [NAME …]`: run the proofs, all of them or those named, and say how each ended."""

import importlib
import pkgutil
import sys
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
from bench import harness

import tests.prove


def proofs() -> dict[str, tuple[str, Callable[[], str | None]]]:
    """Every module beside this one with a `main()`, with the first line of its docstring."""
    found: dict[str, tuple[str, Callable[[], str | None]]] = {}
    for info in pkgutil.iter_modules(tests.prove.__path__):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"tests.prove.{info.name}")
        if hasattr(module, "main"):
            found[info.name] = ((module.__doc__ or "").strip().partition("\n")[0], module.main)
    return found


def run(name: str, what: str, main: Callable[[], str | None]) -> bool:
    print(f"== {name}: {what}", flush=True)
    start = time.monotonic()
    try:
        figures = main()
    except (Exception, SystemExit):  # noqa: BLE001  a proof that fails must not keep the others from running
        traceback.print_exc()
        record(name, "does not hold", "")
        print(f"== {name}: DOES NOT HOLD ({time.monotonic() - start:.0f} s)", flush=True)
        return False
    record(name, "holds", figures or "")
    print(f"== {name}: holds ({time.monotonic() - start:.0f} s){f': {figures}' if figures else ''}", flush=True)
    return True


def record(name: str, result: str, figures: str) -> None:
    """Write the result of a proof beside those of the benchmarks: `./dev bench --page` shows it."""
    file = harness.BUILD / "proofs.json"
    known = msgspec.json.decode(file.read_bytes())["proofs"] if file.exists() else {}
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    known[name] = {"result": result, "figures": figures, "date": date, "commit": harness.commit()}
    harness.write("proofs", {"name": "proofs", "proofs": known})


def main(arguments: list[str]) -> int:
    known = proofs()
    if "--list" in arguments:
        for name, (what, _) in known.items():
            print(f"{name:24} {what}")
        return 0
    names = arguments or list(known)
    if unknown := [name for name in names if name not in known]:
        print(f"no such proof: {', '.join(unknown)} (there are: {', '.join(known)})", file=sys.stderr)
        return 2
    broken = [name for name in names if not run(name, *known[name])]
    print(f"{len(names) - len(broken)} of {len(names)} proofs hold" + (f"; not {', '.join(broken)}" if broken else ""))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
