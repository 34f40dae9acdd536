"""Forms as browsers send them: their fields, and what makes two of them the same."""

from urllib.parse import parse_qsl

from patra.web.console.act import Form
from patra.web.problem import Problem

FORM_BYTES = 4 * 1024 * 1024
LOGIN_BYTES = 16 * 1024  # anybody may send it
MAX_FORM_FIELDS = 2_000
NEW_IN_EACH_FORM = frozenset({"form_token", "once", "confirm", "previewed_version"})
"""Fields that a refused form does not hand on: a preview that is shown again may show another version."""


def form_fields(body: bytes) -> dict[str, str] | Problem:
    """The fields of a form as a browser sends it; several ids of events are lines of one field."""
    try:
        pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS)
    except ValueError:
        return Problem(413, "body_too_large", "The form has too many fields")
    fields = dict(pairs)
    if ids := [value for name, value in pairs if name == "event_ids" and value]:
        fields["event_ids"] = "\n".join(ids)
    return fields


def handed_on(form: Form) -> dict[str, str]:
    """The fields that a form hands on to the next one."""
    return {field: value for field, value in form.items() if field not in NEW_IN_EACH_FORM}
