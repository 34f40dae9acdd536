"""What `patra demo` shows: one step an engine, run against a Patra that is already up.

A step gets a `Demo` and gives lines to print, one after the other as they become true. `prepare` runs before the
process starts and may add settings by key (a simulated provider's address, say); `show` runs when it answers. An engine
adds its step to `STEPS`.
"""

from collections.abc import Callable, Iterable, Mapping
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
    show: Callable[[Demo], Iterable[str]]
    prepare: Callable[[Path], Mapping[str, Any]] | None = None


def _ingest(demo: Demo) -> Iterable[str]:
    from patra.demo.providers_show import story  # noqa: PLC0415  a demonstration starts before its steps are loaded

    return story(demo.folder)


STEPS: tuple[Step, ...] = (
    Step(
        name="Ingest: three providers, throttling, a crowded day, a crash and a recovery",
        show=_ingest,
        prepare=lambda _: {"ingest.executors": 0},  # the step brings executors of its own, and kills one
    ),
)
