"""New identifiers for what has no natural key: nothing goes in, UUIDv7 text comes out (ruling B1).

Identifiers made one after the other by one process sort in that order as text.
"""

import uuid_utils


def new_id() -> str:
    """A UUIDv7 in lower-case hex with dashes."""
    return str(uuid_utils.uuid7())
