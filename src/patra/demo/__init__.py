"""What `patra demo` shows: one step an engine, run against a Patra that is already up.

A step gets a `Demo` and gives lines to print. `prepare` runs before the process starts and may add settings by key
(a simulated provider's address, say); `show` runs when it answers. An engine adds its step to `STEPS`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec


class Demo(msgspec.Struct, frozen=True, kw_only=True):
    """The running demonstration: where it answers, and a folder that is gone afterwards."""

    url: str
    folder: Path


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """An engine's part of the demonstration."""

    name: str
    show: Callable[[Demo], Sequence[str]]
    prepare: Callable[[Path], Mapping[str, Any]] | None = None


STEPS: tuple[Step, ...] = ()
