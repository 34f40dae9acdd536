"""Settings and actors as identities of the bus: for which producers and tenants each may publish (B7)."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product

from patra.app.access.actor import Actor, Role, Scope
from patra.app.access.tokens import shared_group
from patra.app.configuration.secrets import is_reference
from patra.app.configuration.settings import Settings
from patra.bus.publishing.publisher_tokens import Publisher, publisher, unbound_publisher
from patra.kernel.errors import ConfigInvalid

HASH = "sha256:"


def publishers(settings: Settings) -> dict[str, Publisher]:
    """The identities that the settings name. Raises ConfigInvalid for a publisher's token that is bound to nothing."""
    found = {
        name: publisher(name, producers=one.producers, tenants=one.tenants, forwards=one.forwards, groups=one.groups)
        for name, one in settings.bus.publishers.items()
    }
    _check_groups(settings)
    for index, entry in enumerate(settings.web.publisher_tokens):
        name = "" if is_reference(entry) or entry.startswith(HASH) else entry.partition("=")[0]
        if name not in found:
            raise ConfigInvalid(
                "config_publisher_unbound",
                f"{name!r} is bound to no producer and no tenant" if name else "the token has no name",
                place=f"web.publisher_tokens[{index}]",
                advice="write NAME=sha256:HEX, and producers and tenants in the table [bus.publishers.NAME]",
            )
    return found


def _check_groups(settings: Settings) -> None:
    """A group belongs to tokens of the same tenants (`shared_group`)."""
    for (_, one), (name, other) in combinations(configured_scopes(settings), 2):
        if (group := shared_group(other.groups, other.tenants, one)) is not None:
            raise ConfigInvalid(
                "config_publisher_groups",
                f"the group {group} is that of another publisher with other tenants",
                place=f"bus.publishers.{name}.groups",
                advice="give each publisher groups of its own, or the same tenants",
            )


def configured_scopes(settings: Settings) -> list[tuple[str, Scope]]:
    """The publishers of the settings that consume for groups, and what each is bound to."""
    named = settings.bus.publishers.items()
    return [(name, Scope(groups=one.groups, tenants=one.tenants)) for name, one in named if one.groups]


def group_conflicts(configured: Sequence[tuple[str, Scope]], stored: Sequence[tuple[str, Scope]]) -> list[str]:
    """Groups that a publisher of the settings and a token of the store consume for with different tenants."""
    pairs = product(configured, stored)
    found = [(shared_group(one.groups, one.tenants, other), name, holder) for (name, one), (holder, other) in pairs]
    texts = {f"{group} ({name} of the settings, token {holder})" for group, name, holder in found if group}
    return sorted(texts)


def tenants_of_group(group: str, bound: Iterable[tuple[str, Scope]]) -> frozenset[str] | None:
    """The tenants whose events some token that consumes for a group may see; None for all of them."""
    seen: set[str] = set()
    for _, scope in bound:
        if group in scope.groups or "*" in scope.groups:
            seen |= set(scope.tenants) or {"*"}
    return None if "*" in seen else frozenset(seen)


def publisher_of(actor: Actor, known: Mapping[str, Publisher]) -> Publisher | None:
    """Whose events an actor may hand in: an administrator's any, a publisher's those it is bound to, else none.

    A token of the store brings its producers, groups and tenants along; one of the settings goes by `bus.publishers`.
    """
    if actor.role is Role.ADMIN:
        return unbound_publisher(actor.name)
    bound = actor.scope
    if bound.producers or bound.groups:
        return publisher(actor.name, producers=bound.producers, tenants=bound.tenants or None, groups=bound.groups)
    if bound.app:
        return None
    return known.get(actor.name) if actor.role is Role.PUBLISHER else None
