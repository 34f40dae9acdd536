"""Forms as browsers send them: their fields, and what makes two of them the same."""

from collections.abc import Iterable
from urllib.parse import parse_qsl

from patra.web.console.act import Form
from patra.web.problem import Problem

FORM_BYTES = 4 * 1024 * 1024
LOGIN_BYTES = 16 * 1024  # anybody may send it
MAX_FORM_FIELDS = 2_000
OF_MANY = frozenset({"event_ids", "ids", "keys", "seqs", "tasks"})
"""Fields that name what an act is done to; the rows that are chosen each give one."""
NEW_IN_EACH_FORM = frozenset({"form_token", "once", "confirm", "previewed_version"})
"""Fields that a refused form does not hand on: a preview that is shown again may show another version."""


def form_fields(body: bytes) -> dict[str, str] | Problem:
    """The fields of a form as a browser sends it; several ids are lines of one field."""
    try:
        pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS)
    except ValueError:
        return Problem(413, "body_too_large", "The form has too many fields")
    return join_fields(pairs)


def join_fields(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Fields by name, the last of each; of a field that names many, every value is a line."""
    fields: dict[str, str] = {}
    for name, value in pairs:
        lines = [one for one in (fields.get(name, ""), value) if one] if name in OF_MANY else [value]
        fields[name] = "\n".join(lines)
    return fields


def handed_on(form: Form) -> dict[str, str]:
    """The fields that a form hands on to the next one."""
    return {field: value for field, value in form.items() if field not in NEW_IN_EACH_FORM}
