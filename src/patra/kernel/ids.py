"""New identifiers for what has no natural key: UUIDv7 text (ruling B1).

Identifiers made one after the other by one process sort in that order as text.
"""

import uuid_utils


def new_id() -> str:
    """A UUIDv7 in lower-case hex with dashes."""
    return str(uuid_utils.uuid7())
