"""Worker processes that are killed with -9 at random and started again.

Only one that has done its share is killed: on a busy machine a fixed rhythm would kill most before they began. Where the
number of kills is given (the short forms), one that has done much more than its share stands still until it is killed or
all kills are done: on a quick machine the work would be over before the first.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from tests.support.faults import kill_hard

ROOT = Path(__file__).parents[2]
SIGNS = "PATRA_PROOF_SIGNS"
PATIENT = "PATRA_PROOF_PATIENT"
FREE = "free"  # the sign that nobody is killed any more


class Life:
    """What a worker counts in its one life: after a random number of turns, few or many, it may be killed."""

    def __init__(self, most: int) -> None:
        self._left = random.randint(1, most)
        self._more = random.randint(0, most) if PATIENT in os.environ else None
        self._signs = Path(os.environ[SIGNS]) if SIGNS in os.environ else None

    def turn(self) -> None:
        self._left -= 1
        if self._signs is None or self._left > 0:
            return
        if self._left == 0:
            (self._signs / str(os.getpid())).touch()
        while self._more is not None and self._left <= -self._more and not (self._signs / FREE).exists():
            time.sleep(0.01)


class Crew:
    """Some processes, each `python -m MODULE ARGUMENT …`; a context manager, none is left behind."""

    def __init__(self, module: str, jobs: list[list[str]], *, most_kills: int | None = None, seed: int = 0) -> None:
        self._module = module
        self._jobs = jobs
        self._most_kills = most_kills
        self._random = random.Random(seed)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._signs = tempfile.TemporaryDirectory(prefix="patra-proof-")
        self.kills = 0

    def __enter__(self) -> Self:
        self._processes = [self._start(job) for job in self._jobs]
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            kill_hard(process)
        self._signs.cleanup()

    def kill_until(self, done: Callable[[], str], *, every: float, limit: float = 1800) -> None:
        """Kill one of them now and then until `done` answers with an empty text; else it says what is missing."""
        started, reported = time.monotonic(), 0.0
        next_kill = started + every
        while missing := done():
            now = time.monotonic()
            if now - started > limit:
                raise TimeoutError(f"after {limit:.0f} s: {missing}")
            if now - reported > 5:
                reported = now
                print(f"   {now - started:5.0f} s  {self.kills:4} kills  {missing}", flush=True)
            if self.kills == self._most_kills:
                self._sign(FREE).touch()
            elif now >= next_kill and self._kill_one():
                next_kill = now + every * (0.5 + self._random.random())
            self._start_again_what_failed()
            time.sleep(min(0.05, every / 4))

    def _kill_one(self) -> bool:
        ready = [n for n, process in enumerate(self._processes) if self._sign(process.pid).exists()]
        if not ready:
            return False
        number = self._random.choice(ready)
        process = self._processes[number]
        kill_hard(process)
        self._sign(process.pid).unlink()
        self.kills += 1
        self._processes[number] = self._start(self._jobs[number])
        return True

    def _start_again_what_failed(self) -> None:
        for number, process in enumerate(self._processes):
            if process.poll() is not None:
                if process.returncode != 0:
                    raise RuntimeError(f"{self._module} {self._jobs[number]} ended with {process.returncode}")
                self._processes[number] = self._start(self._jobs[number])

    def _start(self, job: list[str]) -> "subprocess.Popen[bytes]":
        environment = {**os.environ, SIGNS: self._signs.name}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else each start compiles everything again
        if self._most_kills is not None:
            environment[PATIENT] = "1"
        return subprocess.Popen([sys.executable, "-m", self._module, *job], cwd=ROOT, env=environment)

    def _sign(self, name: int | str) -> Path:
        return Path(self._signs.name) / str(name)
