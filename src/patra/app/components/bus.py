"""Turns settings and common ground into the bus, its duties as loops and its checks."""

from collections.abc import Sequence
from typing import Any

from patra.app.access.actor import Actor
from patra.app.access.tokens import scopes_in_force
from patra.app.component import BuiltComponent, Check, Context, Health
from patra.app.components.bus_publishers import (
    configured_scopes,
    group_conflicts,
    publisher_of,
    publishers,
    tenants_of_group,
)
from patra.app.configuration.egress_networks import webhook_networks
from patra.app.configuration.engine_settings import BusSettings
from patra.app.configuration.secrets import is_reference, resolve
from patra.app.loops import Loop, LoopRole
from patra.bus.operations import behind
from patra.bus.publishing.foreign_cloudevents import Completion, completion
from patra.bus.publishing.publisher_tokens import Publisher
from patra.bus.runtime import BusEngine, Duty
from patra.bus.store import groups, version_stages
from patra.bus.transports.webhook_secrets import WebhookKeys, is_derived
from patra.kernel.clock import DAY, SECOND
from patra.kernel.db import Tx
from patra.kernel.errors import ConfigInvalid, PatraError, count_phrase

ROLES = {
    "upkeep": LoopRole.UPKEEP,
    "webhooks": LoopRole.RELAY,
    "relay": LoopRole.RELAY,
    "receiver": LoopRole.RELAY,
}
"""Of the duties that are no work of a group."""


def join(ground: Context) -> BuiltComponent:
    """Build the bus on the common ground."""
    settings = ground.settings.bus
    nats_url = resolve(settings.nats_url, "bus.nats_url") if settings.nats_url else ""
    credentials = resolve(settings.nats_credentials, "bus.nats_credentials") if settings.nats_credentials else ""
    publishers(ground.settings)  # a token that is bound to nothing stops the start
    engine = BusEngine.open(
        ground.db,
        ground.clock,
        settings.catalogue,
        nats_url=nats_url,
        stream=settings.nats_stream,
        credentials=credentials,
        replicas=settings.nats_replicas,
    )
    engine.webhook_networks = webhook_networks(ground.settings)
    engine.webhook_keys = webhook_keys(settings)
    engine.keys_kept = _keys_kept(settings)
    engine.settled_letters_kept = settings.keep_settled_dead_letters_days * DAY or None
    return BuiltComponent(
        engine=engine,
        loops=[_loop(duty) for duty in engine.duties()],
        checks=[
            lambda: _check(engine, int(settings.lag_warning_seconds * SECOND)),
            lambda: webhook_check(engine.db.read(groups.webhooks), engine.webhook_keys),
            lambda: group_check(ground),
        ],
        release=engine.close,
    )


def webhook_keys(settings: BusSettings) -> WebhookKeys:
    """Keys that signing secrets are derived from. Raises ConfigInvalid for one that is short or not a reference."""
    for index, entry in enumerate(settings.webhook_keys):
        if not is_reference(entry):
            raise ConfigInvalid(
                "config_wrong_value",
                "a key stands here in clear text",
                place=f"bus.webhook_keys[{index}]",
                advice="write env:NAME or file:PATH",
            )
    return WebhookKeys(
        [resolve(entry, f"bus.webhook_keys[{index}]") for index, entry in enumerate(settings.webhook_keys)]
    )


def group_loops(engine: BusEngine, group: str, *, workers: int = 1) -> list[Loop]:
    """The loops of a consumer group, for the part whose consumers it has."""
    return [_loop(duty) for duty in engine.group_duties(group, workers=workers)]


def bus_of(ground: Any) -> BusEngine:
    """The bus of a Patra or of its ground."""
    return ground.engine(BusEngine)


def publisher_for(ground: Any, actor: Actor) -> Publisher | None:
    """As whom an actor publishes on the bus of a Patra; None for one who may not."""
    return publisher_of(actor, publishers(ground.settings))


def tenants_seen_by_group(ground: Any, tx: Tx, group: str) -> frozenset[str] | None:
    """The tenants whose events some token of a group, of the settings or of the store, may see; None for all."""
    return tenants_of_group(group, [*configured_scopes(ground.settings), *scopes_in_force(tx, ground.clock.now())])


def completion_for(ground: Any, who: Publisher) -> Completion:
    """Fills in the attributes that CloudEvents of other senders lack."""
    engine = bus_of(ground)
    return completion(engine.bus.catalogue, who.tenants, lambda: engine.db.read(version_stages.majors_not_for_all))


MIN_KEY_DAYS = 30
"""Publishers that repeat themselves, and messages that a stream hands over again, do so within days."""


def _keys_kept(settings: BusSettings) -> int | None:
    if 0 < settings.keep_keys_days < MIN_KEY_DAYS:
        raise ConfigInvalid(
            "config_wrong_value",
            f"keys of events are kept for {MIN_KEY_DAYS} days or more: a repeated publish would be a second event",
            place="bus.keep_keys_days",
            advice="set more days, or 0 to keep them for ever",
        )
    return settings.keep_keys_days * DAY or None


def _loop(duty: Duty) -> Loop:
    role = ROLES.get(duty.name, LoopRole.WORK)
    return Loop(name=f"bus.{duty.name}", run_once=duty.run_once, every=duty.every, role=role)


def webhook_check(found: Sequence[groups.Webhook], keys: WebhookKeys) -> Check:
    """Whether the signing secrets of webhooks are out of the store, and their keys at hand."""
    name = "webhook secrets"
    if keyless := [one.name for one in found if keys.reveal(one) is None]:
        text = f"the key of {', '.join(keyless)} is not in bus.webhook_keys: not called, events wait"
        return Check(name=name, health=Health.BROKEN, found=text, advice="put the key back, or rotate these webhooks")
    if clear := [one.name for one in found if not is_derived(one.secret)]:
        text = f"in clear in the store: {', '.join(clear)}"
        advice = (
            "anyone with read access to the store can sign; set bus.webhook_keys and `patra bus webhooks rotate NAME`"
        )
        return Check(name=name, health=Health.WARNING, found=text, advice=advice)
    if old := [one.name for one in found if one.old_secret and not is_derived(one.old_secret)]:
        text = f"the replaced one in clear in the store: {', '.join(old)}"
        advice = "it signs along until its overlap is over; a minute later `patra up` or `work` has emptied it"
        return Check(name=name, health=Health.WARNING, found=text, advice=advice)
    return Check(name=name, health=Health.OK, found=f"none of {len(found)} in the store")


def group_check(ground: Context) -> Check:
    """Whether the settings and the tokens of the store agree whose events a group takes."""
    name, now = "bus groups", ground.clock.now()
    stored = ground.db.read(lambda tx: scopes_in_force(tx, now))
    if conflicts := group_conflicts(configured_scopes(ground.settings), stored):
        text = f"consumed by tokens with different tenants: {', '.join(conflicts)}"
        advice = "give each a group of its own, or the same tenants; until then each passes over the other's events"
        return Check(name=name, health=Health.WARNING, found=text, advice=advice)
    return Check(name=name, health=Health.OK, found="none is consumed by tokens with different tenants")


def _check(engine: BusEngine, longest_lag: int) -> Check:
    name = "bus"
    try:
        if engine.stream is not None:
            engine.stream.incarnation()
        broken, elsewhere = engine.db.read(
            lambda tx: (engine.bus.evolution(tx), engine.bus.registered_elsewhere(tx).types)
        )
        state = engine.health()
        now = engine.clock.now()
        troubles = state.troubles + engine.db.read(lambda tx: behind(tx, now, longest_lag))
    except PatraError as error:
        return Check(name=name, health=Health.BROKEN, found=str(error), advice="see bus.nats_url and store.url")
    if broken:
        advice = "this process publishes no such event; see `patra bus catalogue check --store` and bus.catalogue"
        return Check(name=name, health=Health.BROKEN, found="; ".join(map(str, broken)), advice=advice)
    if troubles:
        advice = "`patra bus dead-letters`, `groups` and `webhooks` show why; replay or discard, thaw, resume"
        return Check(name=name, health=Health.WARNING, found="; ".join(troubles), advice=advice)
    transport = "NATS JetStream" if engine.stream is not None else "the store itself"
    found = f"{count_phrase(len(engine.bus.catalogue.types), 'event type')} over {transport}"
    if elsewhere:
        found += f"; registered by programs, which handle them: {', '.join(elsewhere)}"
    return Check(name=name, health=Health.OK, found=found)
