"""Text of a replay log in, its lines out, strictly read: what RFC 8259 does not call JSON is refused."""

import json


class NotJsonError(ValueError):
    """The text is not JSON, or not JSON that means one thing only."""


def _object(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise NotJsonError("an object names a member twice")
    return dict(pairs)


def _constant(name):
    raise NotJsonError(f"{name} is not JSON")


def read_json(text):
    """Integers of any size stay whole; `NaN` and `Infinity` and members named twice are refused."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except NotJsonError:
        raise
    except (ValueError, RecursionError) as problem:
        raise NotJsonError(str(problem)) from None


def read_log(text):
    """One JSON object a line: `{"receivedAt", "batch"}` or `{"tick"}`; empty lines are skipped."""
    lines = [read_json(line) for line in text.split("\n") if line.strip()]
    for line in lines:
        if not isinstance(line, dict) or not ({"receivedAt", "batch"} == set(line) or {"tick"} == set(line)):
            raise NotJsonError("a line is neither a batch nor a tick")
    return lines
