"""What an operator can do here: a table of acts, each one endpoint of the HTTP interface.

Level 1 is a button. Level 2 asks once more and says what follows. Level 3 wants a reason or the name typed. The server
checks both again: a submitted form does not prove that it was read.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlencode

import msgspec

from patra.web.console.markup.formats import link, plural

Form = Mapping[str, str]
NUMBERS = re.compile(r"[0-9 ]*")
"""Several numbers in one field are several words of a command."""


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """A field that a person fills in; `choices` makes it a list, `rows` a text area."""

    name: str
    label: str
    hint: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()
    empty_label: str = ""
    """What is shown for the empty one of the choices."""
    rows: int = 0
    value: str = ""
    mono: bool = False


def path_of(template: str, form: Form) -> dict[str, str]:
    """The fields of a form that stand in a path."""
    return {part[1:-1]: form.get(part[1:-1], "") for part in template.split("/") if part.startswith("{")}


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """A question to the HTTP interface, and the template that shows its answer in the confirmation."""

    template: str
    query: Callable[[Form], dict[str, Any]]
    shown_by: str
    method: str = "GET"


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """An act. Texts are formats over the fields of its form."""

    method: str = "POST"
    template: str
    level: int
    title: str
    text: str
    button: str
    body: Callable[[Form], dict[str, Any]]
    done: Callable[[Form, Any], str]
    after: Callable[[Form, Any], str]
    confirm: str = ""
    """The field whose value must be typed."""
    inputs: tuple[Input, ...] = ()
    command: str | Callable[[Form], str] = ""
    """A format, or what chooses one by the fields that are given."""
    options: tuple[str, ...] = ()
    """Fields that the command takes as options of the same name, where they are given."""
    preview: Preview | None = None
    """What the server says of it before it is done."""
    report: str = ""
    """A template that shows the answer, for what is not said in a line."""
    secret: Callable[[Any], tuple[str, str]] | None = None
    """What the answer shows once and never again: what it is, and its value."""

    def path(self, form: Form) -> dict[str, str]:
        return path_of(self.template, form)


def act_href(kind: str, name: str, fields: Mapping[str, Any], back: str) -> str:
    """The address of an act's confirmation (`confirm`) or of the act (`do`)."""
    given = {field: value for field, value in fields.items() if value not in ("", None)}
    return f"/console/{kind}/{name}?{urlencode([*_pairs(given), ('back', back)])}"


def _pairs(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for name, value in fields.items():
        values = cast("Sequence[object]", value) if isinstance(value, (list, tuple)) else [value]
        pairs += [(name, str(one)) for one in values]
    return pairs


def why_given(form: Form) -> dict[str, Any]:
    return {"why": form.get("why", ""), "endpoint": form.get("endpoint", "")}


def only_why(form: Form) -> dict[str, Any]:
    return {"why": form.get("why", "")}


def nothing(form: Form) -> dict[str, Any]:
    del form
    return {}


def back_to(form: Form, answer: Any) -> str:
    del answer
    return form.get("back", "") or link("/")


def subject_of(form: Form) -> str:
    return form["source"] + (f" / {form['endpoint']}" if form.get("endpoint") else "")


def keys_of(form: Form, name: str) -> list[str]:
    """The lines of a field, each one key."""
    return [line.strip() for line in form.get(name, "").splitlines() if line.strip()]


def ids_of(form: Form) -> list[str]:
    return keys_of(form, "event_ids")


def form_values(form: Form, *names: str) -> dict[str, Any]:
    return {name: form[name].strip() for name in names if form.get(name, "").strip()}


def rest_of(asked: Iterable[object], changed: int, why: str) -> str:
    """What is said of those that an act on many was asked for and left as they are; nothing where there are none."""
    left = len(set(asked)) - changed
    return f" {plural(left, 'was', 'were')} left: {why}." if left > 0 else ""


def next_address(form: Form, answer: Any) -> str:
    refused = answer["refused"]
    problems = f"; {plural(len(refused), 'was', 'were')} refused: " if refused else "."
    codes = ", ".join(sorted({str(one.get("code")) for one in refused.values()}))
    return f"{plural(len(answer['letters']), 'dead letter')} of {form['group']}{problems}{codes}"


def new_key(answer: Any) -> tuple[str, str]:
    return "The key; it is shown here and never again", str(answer["key"])


def say(text: str) -> Callable[[Form, Any], str]:
    return lambda form, answer: text.format_map({**form, "answer": answer})


REASON = Input(name="why", label="Why", hint="kept in the audit")
REASON_REQUIRED = Input(name="why", label="Why", hint="kept in the audit", required=True)
LENGTHS = ("PT1H", "PT4H", "PT8H", "P1D", "P3D", "P7D", "P30D")
IDS = Input(name="event_ids", label="Event ids", hint="one in a line", rows=4, required=True, mono=True)


class Fields(dict[str, str]):
    """The fields of a form; one that is not given is empty."""

    def __missing__(self, key: str) -> str:
        return ""


def command_of(act: Act, form: Form) -> str:
    """The act on the command line. The values of the form are untrusted, so each word of them is quoted."""
    template = act.command if isinstance(act.command, str) else act.command(form)
    if not template:
        return ""
    words = Fields({name: " ".join(_quote_line(line) for line in value.splitlines()) for name, value in form.items()})
    for name in act.options:
        words[name] = f"--{name.replace('_', '-')} {words[name]}" if words[name] else ""
    return " ".join(part for part in (one.format_map(words) for one in template.split(" ")) if part)


def _quote_line(line: str) -> str:
    return line if NUMBERS.fullmatch(line) else shlex.quote(line)


def lacking(act: Act, form: Form) -> dict[str, str]:
    """What keeps the act from being done, by field."""
    found = {one.name: "This is needed." for one in act.inputs if one.required and not form.get(one.name, "").strip()}
    if act.confirm and form.get("confirm", "").strip() != form.get(act.confirm, ""):
        found["confirm"] = f"Type {form.get(act.confirm, '')} to confirm."
    return found
