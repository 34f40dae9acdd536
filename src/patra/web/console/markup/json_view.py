"""JSON coloured on the server, keys in their order, numbers as they came; and the difference of two documents.

Nothing is parsed in the browser, so no untrusted payload can become markup there: every piece is escaped.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
from markupsafe import Markup, escape

from patra.kernel.safety.known_secrets import MASK
from patra.kernel.safety.redact import is_telling
from patra.web.console.calls import Number
from patra.web.console.markup.masked_text import masked_text

CONTEXT_LINES = 2


def json_lines(value: Any, indent: int = 0) -> list[str]:
    """Plain JSON text, one line for each element."""
    pad = "  " * indent
    match value:
        case dict() if value:
            rows = cast("dict[str, Any]", value)
            out = ["{"]
            for number, (name, inner) in enumerate(rows.items()):
                comma = "," if number < len(rows) - 1 else ""
                first, *rest = json_lines(_mask_value(name, inner), indent + 1)
                out.append(f"{pad}  {_text(name)}: {first.lstrip()}")
                out += rest
                out[-1] += comma
            return [*out, f"{pad}}}"]
        case list() if value:
            items = cast("list[Any]", value)
            out = ["["]
            for number, inner in enumerate(items):
                comma = "," if number < len(items) - 1 else ""
                first, *rest = json_lines(inner, indent + 1)
                out.append(f"{pad}  {first.lstrip()}")
                out += rest
                out[-1] += comma
            return [*out, f"{pad}]"]
        case _:
            return [_text(value)]


def json_markup(value: Any) -> Markup:
    """The document in colours."""
    out: list[str] = []
    _walk(value, "", out)
    return Markup("".join(out))  # noqa: S704  every piece of it is escaped


def line_count(value: Any) -> int:
    """How many lines `json_lines` has, without making them."""
    match value:
        case dict() if value:
            return 2 + sum(line_count(inner) for inner in cast("dict[str, Any]", value).values())
        case list() if value:
            return 2 + sum(line_count(inner) for inner in cast("list[Any]", value))
        case _:
            return 1


class DiffLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a side-by-side difference: `same`, `changed`, `added`, `removed`, or `folded`."""

    kind: str
    left_number: int | None = None
    left: str = ""
    right_number: int | None = None
    right: str = ""


def difference(left: Any, right: Any) -> list[DiffLine]:
    """Two documents side by side; long equal runs are folded."""
    return list(_fold_lines(list(_align_lines(json_lines(left), json_lines(right)))))


def _align_lines(left: Sequence[str], right: Sequence[str]) -> Iterator[DiffLine]:
    for tag, a, b, c, d in difflib.SequenceMatcher(a=left, b=right, autojunk=False).get_opcodes():
        for offset in range(max(b - a, d - c)):
            has_left, has_right = a + offset < b, c + offset < d
            yield DiffLine(
                kind="same" if tag == "equal" else _kind(has_left, has_right),
                left_number=a + offset + 1 if has_left else None,
                left=left[a + offset] if has_left else "",
                right_number=c + offset + 1 if has_right else None,
                right=right[c + offset] if has_right else "",
            )


def _kind(has_left: bool, has_right: bool) -> str:
    if has_left and has_right:
        return "changed"
    return "removed" if has_left else "added"


def _fold_lines(lines: Sequence[DiffLine]) -> Iterator[DiffLine]:
    near = {
        index + step
        for index, line in enumerate(lines)
        if line.kind != "same"
        for step in range(-CONTEXT_LINES, CONTEXT_LINES + 1)
    }
    left_out = 0
    for index, line in enumerate(lines):
        if index in near or not near:
            if left_out:
                yield DiffLine(kind="folded", left=f"{left_out} equal lines")
                left_out = 0
            yield line
        else:
            left_out += 1
    if left_out:
        yield DiffLine(kind="folded", left=f"{left_out} equal lines")


def _walk(value: Any, pad: str, out: list[str]) -> None:
    """Writes a value in pieces; what came from outside is escaped, piece by piece."""
    match value:
        case dict() if value:
            out.append("{\n")
            for number, (name, inner) in enumerate(cast("Mapping[str, Any]", value).items()):
                between = ",\n" if number else ""
                out.append(f'{between}{pad}  <span class="k">{escape(_text(name))}</span>: ')
                _walk(_mask_value(name, inner), f"{pad}  ", out)
            out.append(f"\n{pad}}}")
        case list() if value:
            out.append("[\n")
            for number, inner in enumerate(cast("list[Any]", value)):
                between = ",\n" if number else ""
                out.append(f"{between}{pad}  ")
                _walk(inner, f"{pad}  ", out)
            out.append(f"\n{pad}]")
        case str() if not isinstance(value, Number):
            out.append(f'<span class="s">{escape(_text(value))}</span>')
        case dict() | list():
            out.append(_text(cast("object", value)))
        case _:
            out.append(f'<span class="m">{escape(_text(value))}</span>')


def _text(value: Any) -> str:
    if isinstance(value, Number):
        return str(value)
    return msgspec.json.encode(masked_text(value) if isinstance(value, str) else value).decode()


def _mask_value(name: str, value: Any) -> Any:
    """The value of a field, masked where its name says that it opens a door or is a person's."""
    return MASK if isinstance(value, str) and value and is_telling(name) else value
