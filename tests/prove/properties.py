"""Every property of the tests holds for twenty times as many examples as `./dev test` tries."""

import os
import subprocess
import sys

SCALE = 20
SECONDS = 3600
RUNNING = "tests/contract/ingest/running"
SCALED = ("tests/contract/bus/test_faults.py", f"{RUNNING}/test_harvest.py", f"{RUNNING}/test_silent_holes.py")


def main() -> str:
    command = [sys.executable, "-m", "pytest", "tests/property", *SCALED, "--timeout", str(SECONDS)]
    subprocess.run(command, env={**os.environ, "PATRA_TEST_SCALE": str(SCALE)}, check=True)
    return f"{SCALE} times the examples"
