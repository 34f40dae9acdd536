"""What an engine hands to the process it runs in: its loops, its doctor's checks, how it stops.

An engine is one `Component` in the list of `wiring.py`: its name, the package with its migrations, and a `join`
function that builds it on the common ground. Its HTTP routes are found by the name (`patra.web.api.<name>`), so is its
command group (`patra.cli.<name>`).
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from patra.app.configuration.settings import Settings
from patra.app.loops import Loop
from patra.kernel.clock import Clock
from patra.kernel.db import Database

T = TypeVar("T")


class Health(StrEnum):
    OK = "ok"
    WARNING = "warning"
    BROKEN = "broken"
    OFF = "off"  # optional, and not in use


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """What the doctor found: one line, and what to do where a check fails."""

    name: str
    health: Health
    found: str
    advice: str = ""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What every engine stands on, and the engines that were joined before it."""

    settings: Settings
    db: Database
    clock: Clock
    engines: dict[str, Any]
    on_demand: Callable[[type], bool] | None = None
    """Joins the part whose engine is of a type, where parts are joined when they are asked for; False for none."""

    def engine(self, kind: type[T]) -> T:
        """The engine of this type."""
        for engine in self.engines.values():
            if isinstance(engine, kind):
                return engine
        if self.on_demand is not None and self.on_demand(kind):
            return self.engine(kind)
        raise LookupError(f"no part has joined a {kind.__name__}")


class BuiltComponent(msgspec.Struct, frozen=True, kw_only=True):
    """An engine, built. At shutdown: `stop_intake`, then the loops end, then `release` (leases, sockets)."""

    engine: Any
    loops: Sequence[Loop] = ()
    checks: Sequence[Callable[[], Check]] = ()
    stop_intake: Callable[[], None] | None = None
    release: Callable[[], None] | None = None
    trouble: Callable[[], str | None] | None = None  # why it cannot work now; asked by `/ready`
    warm: Callable[[], None] | None = None  # done before the process answers, so that the first request is no slower


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the list in `wiring.py`; a part may bring only tables, or none."""

    name: str
    migrations: str = ""
    join: Callable[[Context], BuiltComponent] | None = None
    engine: str = ""
    """The type of its engine, `module:name`: by it the part is found when an engine is asked for."""
