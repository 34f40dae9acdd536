"""`patra bus`: publish, follow, look after groups and dead letters, check and print the catalogue.

| file | commands |
|---|---|
| events, timeline_lines | publish, tail, timeline |
| consume, shell_command | consume |
| groups | groups (pause, resume, unsubscribe, forget) |
| dead_letters, one_dead_letter | dead-letters, replay, discard, freeze, thaw |
| bulk_acts | replay-all, discard-all, acts |
| catalogue | catalogue (check, release, docs) |
| new, stage | new, stage |
| common | what these share |
| webhooks | webhooks (add, rotate, remove) |
"""

from collections.abc import Mapping
from typing import ClassVar

import click

from patra.cli.bus.bulk_acts import acts, discard_all, replay_all
from patra.cli.bus.catalogue import catalogue
from patra.cli.bus.consume import consume
from patra.cli.bus.dead_letters import dead_letters, discard, freeze, replay, thaw
from patra.cli.bus.events import publish, tail, timeline
from patra.cli.bus.groups import groups_
from patra.cli.bus.new import new
from patra.cli.bus.stage import stage
from patra.cli.bus.webhooks import webhooks
from patra.cli.terminal.groups import Group


class _BusGroup(Group):
    sections: ClassVar[Mapping[str, str]] = {
        "Contracts": "catalogue new stage",
        "Publish and consume": "publish consume groups webhooks tail timeline",
        "Dead letters": "dead-letters replay replay-all discard discard-all acts freeze thaw",
    }


@click.group("bus", cls=_BusGroup)
def group() -> None:
    """Envelopes, contracts, consumer groups, dead letters, replay."""


for _command in (
    publish,
    consume,
    tail,
    timeline,
    groups_,
    dead_letters,
    replay,
    discard,
    replay_all,
    discard_all,
    acts,
    freeze,
    thaw,
    catalogue,
    new,
    stage,
    webhooks,
):
    group.add_command(_command)
