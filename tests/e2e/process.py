"""A real Patra process: started, listened to, sent signals."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import urllib3

PATRA = (sys.executable, "-m", "patra")
PATIENCE = 300.0


def environment(**variables: str) -> dict[str, str]:
    """The variables of this process without Patra's own."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PATRA_")} | variables


def patra(folder: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*PATRA, *args], cwd=folder, env=environment(**variables), capture_output=True, text=True, timeout=PATIENCE
    )


class Process:
    """A process whose log lines are read as they come."""

    def __init__(self, popen: subprocess.Popen[str]) -> None:
        self.popen = popen
        self.log: list[dict[str, Any]] = []
        self.url = ""

    def until(self, event: str) -> dict[str, Any]:
        """Read the log up to an event."""
        assert self.popen.stderr
        for line in self.popen.stderr:
            entry = msgspec.json.decode(line) if line.startswith("{") else {"event": "(text)", "text": line}
            self.log.append(entry)
            if entry["event"] == event:
                return entry
        raise AssertionError(f"the process ended without {event}: {self.log}")

    def get(self, path: str) -> urllib3.BaseHTTPResponse:
        return urllib3.request("GET", self.url + path, retries=False, timeout=PATIENCE)

    def signal(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def ended(self) -> int:
        """Read the rest of the log and give the exit code."""
        assert self.popen.stderr
        for line in self.popen.stderr:
            self.log.append(msgspec.json.decode(line) if line.startswith("{") else {"event": "(text)", "text": line})
        return self.popen.wait(PATIENCE)

    def events(self) -> list[str]:
        return [entry["event"] for entry in self.log]


@contextmanager
def started(folder: Path, command: Sequence[str], **variables: str) -> Iterator[Process]:
    """Start a command; whatever happens, it is gone afterwards."""
    with subprocess.Popen(
        command, cwd=folder, env=environment(**variables), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as popen:
        try:
            yield Process(popen)
        finally:
            popen.kill()


@contextmanager
def up(folder: Path, *args: str, **variables: str) -> Iterator[Process]:
    """`patra up` (or the command given) on a free port, answering."""
    command = args or ("up", "--port", "0")
    with started(folder, [*PATRA, *command], **variables) as process:
        process.url = process.until("listening")["url"]
        yield process
