"""How committed events leave for the groups: at once into their lines, or through a broker."""

from collections.abc import Sequence
from typing import Protocol

from patra.bus.publishing.publish import Publication
from patra.bus.store import events
from patra.bus.store.stream_control import CatalogueTold, FreezeTold
from patra.kernel.db import Tx


class Sender(Protocol):
    """How committed events leave for the groups: at once into their lines, or through a broker."""

    def send(
        self,
        tx: Tx,
        routes: events.Routing,
        publications: Sequence[Publication],
        seqs: dict[tuple[bytes, int], int],
        now: int,
    ) -> None: ...

    def tell(self, tx: Tx, told: FreezeTold | CatalogueTold, now: int) -> None:
        """Announce it to other stores, where there may be any."""
        ...


class Direct:
    """The store itself is the transport: the lines of all groups are filled in the publisher's own transaction."""

    def send(
        self,
        tx: Tx,
        routes: events.Routing,
        publications: Sequence[Publication],
        seqs: dict[tuple[bytes, int], int],
        now: int,
    ) -> None:
        events.fan_out(tx, routes, publications, seqs, now)

    def tell(self, tx: Tx, told: FreezeTold | CatalogueTold, now: int) -> None:
        """Nobody else reads this store's events."""
