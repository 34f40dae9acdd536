"""A stand-in for the program Piper: it writes a tone as long as the text, or fails as it is told."""

import json
import stat
import sys
from pathlib import Path

PROGRAM = """#!{python}
import math, struct, sys, wave
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
text = sys.stdin.readline().strip()
if {fails!r}:
    print("cannot load the model", file=sys.stderr)
    sys.exit(3)
open({log!r}, "a").write(repr((words.get("--model"), words.get("--speaker"), text)) + "\\n")
with wave.open(words["--output_file"], "wb") as file:
    file.setnchannels(1), file.setsampwidth(2), file.setframerate(16000)
    count = 16000 * max(1, len(text)) // 20
    file.writeframes(b"".join(struct.pack("<h", int(9000 * math.sin(n / 9))) for n in range(count)))
"""


def install(folder: Path, *, fails: bool = False) -> tuple[Path, Path, Path]:
    """The program, the model of a voice, and the log of what it was asked."""
    folder.mkdir(parents=True, exist_ok=True)
    program, model, log = folder / "piper", folder / "anna.onnx", folder / "asked.log"
    program.write_text(PROGRAM.format(python=sys.executable, log=str(log), fails=fails))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    model.write_bytes(b"onnx")
    Path(f"{model}.json").write_text(json.dumps({"audio": {"sample_rate": 16000}}))
    return program, model, log
