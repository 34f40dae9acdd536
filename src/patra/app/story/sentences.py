"""Parts of sentences that the texts of entries share. Pure."""


def times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def ended_by(error: object) -> str:
    """The end of a sentence that names an error, such as an exception's type and message; a full stop without one."""
    return f": {error}" if error else "."


def fault_at(place: str, detail: str) -> str:
    """What is wrong, with the place where it stands; empty where neither is known."""
    return ": ".join(filter(None, (place, detail)))
