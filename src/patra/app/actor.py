"""Who acts: a name for the audit, and a role that says how far it may go (viewer < operator < admin)."""

import getpass
import os
from enum import StrEnum

import msgspec


class Role(StrEnum):
    """A role may do whatever a smaller one may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def allows(self, needed: "Role") -> bool:
        order = tuple(Role)
        return order.index(self) >= order.index(needed)


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """Someone who reads or acts, as the audit names them."""

    name: str
    role: Role


def command_line_actor() -> Actor:
    """Whoever runs the command line holds the store itself: an admin, named after the account."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as in some containers
        name = str(os.getuid())
    return Actor(name=f"cli:{name}", role=Role.ADMIN)
