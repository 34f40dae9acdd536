"""`./dev bench [--list] [--page] [NAME [ARGUMENT …]]`: measure, and print the figures side by side.

A benchmark is a module here without an underscore in its name (`x_part` is a part of `x`). One with `cases(quick)` is run
by the harness; any other is a program of its own. Nothing is asserted: figures are for people, and depend on the machine.

`--page` keeps what was measured under bench/results and renders docs/explanation/performance.md from it; without a NAME
nothing is measured, and the results of the last runs are kept.
"""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

from bench import harness, performance_page

HERE = Path(__file__).parent


def benchmarks() -> dict[str, Path]:
    return {file.stem: file for file in sorted(HERE.glob("*.py")) if "_" not in file.stem and file.stem != "harness"}


def run(name: str, arguments: list[str]) -> int:
    print(f"== {name}", flush=True)
    if "\ndef cases(" in benchmarks()[name].read_text("utf-8"):
        return harness.main(name, importlib.import_module(f"bench.{name}"), arguments)
    return subprocess.run([sys.executable, "-m", f"bench.{name}", *arguments], check=False).returncode


def page(names: list[str]) -> int:
    """Keep the results of benchmarks and render the page."""
    kept = performance_page.keep(names)
    if not kept:
        print(f"no result in {harness.BUILD} that the page shows: run `./dev bench NAME --page` first", file=sys.stderr)
        return 1
    print(f"kept: {', '.join(kept)}; rendered {performance_page.write_page().relative_to(performance_page.ROOT)}")
    return 0


def main(arguments: list[str]) -> int:
    known = benchmarks()
    if "--page" in arguments:
        rest = [argument for argument in arguments if argument != "--page"]
        code = main(rest) if rest else 0
        return code or page(rest[:1])
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
    print(f"usage: ./dev bench [--list] [--page] [NAME [ARGUMENT …]]; there are: {', '.join(known)}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
