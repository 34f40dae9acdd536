"""Something that needs a person, as the overview lists it."""

import msgspec


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Something that needs a person: what, why, since when, where it is dealt with, and the act that fixes it."""

    tone: str = "bad"
    subject: str
    href: str
    what: str
    why: str = ""
    code: str = ""
    consequence: str = ""
    since: str | None = None
    door: str = "Open"
    act: str = ""
    act_label: str = ""
    fields: dict[str, str] = {}
