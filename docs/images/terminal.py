# ruff: noqa: INP001, S603, S607  a script of the documentation
"""Runs the README's third quick start in an empty folder and draws the terminal: python docs/images/terminal.py"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
COMMANDS = (
    "python dead_letter.py",
    "patra bus dead-letters",
    "patra bus replay invoices --all --confirm invoices",
    "python dead_letter.py --fixed",
)
WIDTH = 110


def main() -> None:
    console = Console(record=True, width=WIDTH, file=StringIO(), color_system="truecolor", force_terminal=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            console.print(Text("$ ", "green") + Text(command, "bold"))
            real = shlex.split(command.replace("dead_letter.py", str(EXAMPLES / "dead_letter.py")))
            done = subprocess.run(
                ["script", "-qec", f"stty cols {WIDTH} rows 40; {shlex.join(real)}", os.devnull],
                cwd=folder, env=os.environ | {"PATH": path, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"},
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            console.print(Text.from_ansi(done.stdout.rstrip()))
    layout = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)  # no fonts from elsewhere
    drawn = console.export_svg(title="a dead letter, and its replay", code_format=layout, unique_id="patra-terminal")
    drawn = re.sub(r"(\.patra-terminal-title|<text[^>]*>)\s*\n", r"\1", drawn)
    (HERE / "terminal.svg").write_text(re.sub(r"[ \t]+$", "", drawn, flags=re.MULTILINE) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
