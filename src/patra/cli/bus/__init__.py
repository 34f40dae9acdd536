"""`patra bus`: publish, follow, look after groups and dead letters, check and print the catalogue.

| file | commands |
|---|---|
| events | publish, tail, timeline |
| groups | groups (pause, resume, unsubscribe, forget) |
| letters | dead-letters, replay, discard, freeze, thaw |
| catalogue | catalogue (check, release, docs) |
| webhooks | webhooks (add, remove) |
"""

import click

from patra.cli.bus.catalogue import catalogue
from patra.cli.bus.events import publish, tail, timeline
from patra.cli.bus.groups import groups_
from patra.cli.bus.letters import dead_letters, discard, freeze, replay, thaw
from patra.cli.bus.webhooks import webhooks


@click.group()
def group() -> None:
    """Envelopes, contracts, consumer groups, dead letters, replay."""


for _command in (publish, tail, timeline, groups_, dead_letters, replay, discard, freeze, thaw, catalogue, webhooks):
    group.add_command(_command)
