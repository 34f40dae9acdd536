"""`./dev bench [--list] [NAME [ARGUMENT …]]`: measure, and print the figures side by side.

A benchmark is a module here without an underscore in its name (`x_part` is a part of `x`). One with `cases(quick)` is run
by the harness; any other is a program of its own. Nothing is asserted: figures are for people, and depend on the machine.
"""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

from bench import harness

HERE = Path(__file__).parent


def benchmarks() -> dict[str, Path]:
    return {file.stem: file for file in sorted(HERE.glob("*.py")) if "_" not in file.stem and file.stem != "harness"}


def run(name: str, arguments: list[str]) -> int:
    print(f"== {name}", flush=True)
    if "\ndef cases(" in benchmarks()[name].read_text("utf-8"):
        return harness.main(name, importlib.import_module(f"bench.{name}"), arguments)
    return subprocess.run([sys.executable, "-m", f"bench.{name}", *arguments], check=False).returncode


def main(arguments: list[str]) -> int:
    known = benchmarks()
    match arguments:
        case ["--list"]:
            for name, file in known.items():
                about = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
                print(f"{name:16} {about.partition(chr(10))[0]}")
            return 0
        case []:
            return max([run(name, []) for name in known], default=0)
        case [name, *rest] if name in known:
            return run(name, rest)
    print(f"usage: ./dev bench [--list] [NAME [ARGUMENT …]]; there are: {', '.join(known)}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
