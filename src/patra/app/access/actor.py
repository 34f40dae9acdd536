"""Who acts: a name for the audit, and a role that says how far it may go (viewer < operator < admin; publisher)."""

import getpass
import os
from enum import StrEnum

import msgspec


class Role(StrEnum):
    """A role may do whatever a smaller one may. A publisher publishes events and consumes them for groups, no more."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"
    PUBLISHER = "publisher"

    def allows(self, needed: "Role") -> bool:
        if self in {needed, Role.ADMIN}:
            return True
        if Role.PUBLISHER in {self, needed}:
            return False
        order = tuple(Role)
        return order.index(self) >= order.index(needed)


class Scope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a token is bound to beside its role; what is empty stands for everything that the role allows."""

    engines: tuple[str, ...] = ()
    app: str = ""
    tenants: tuple[str, ...] = ()
    producers: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def __str__(self) -> str:
        named = {
            "engines": ",".join(self.engines),
            "app": self.app,
            "tenants": ",".join(self.tenants),
            "producers": ",".join(self.producers),
            "groups": ",".join(self.groups),
        }
        return " ".join(f"{name}={text}" for name, text in named.items() if text)


UNBOUND = Scope()


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """The person or program that reads or acts, as the audit names it, and what it is bound to."""

    name: str
    role: Role
    scope: Scope = UNBOUND


def command_line_actor() -> Actor:
    """The user of the command line has the store itself: an admin, named after the account."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as in some containers
        name = str(os.getuid())
    return Actor(name=f"cli:{name}", role=Role.ADMIN)
