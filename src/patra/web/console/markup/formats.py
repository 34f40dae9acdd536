"""Values as a reader expects them: exact instants with the date when it is not today, spans in two units, grouped
digits, and keys cut in the middle.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup, escape

from patra.kernel.clock import DAY, HOUR, MINUTE, SECOND, format_instant, parse_instant
from patra.web.console.markup.element import element

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
KEY_LENGTH = 28
NONE_TEXT = "\N{EN DASH}"
UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))


def instant(value: Any) -> int | None:
    """An instant in µs, of RFC 3339 text or of µs."""
    if isinstance(value, int):
        return value
    return parse_instant(value) if isinstance(value, str) and value else None


def clock_text(value: Any, now: int, *, seconds: bool = True, fraction: bool = False) -> str:
    """`14:02:30`, `16 Nov 22:10:05` when it is another day, and with the year when it is another one.

    With `fraction` milliseconds, `14:02:30.982`, where several things happen in a second.
    """
    at = instant(value)
    if at is None:
        return ""
    text = format_instant(at - at % SECOND)
    date, time = text[:10], text[11:19] if seconds else text[11:16]
    time += f".{at % SECOND // 1000:03d}" if fraction else ""
    if date == format_instant(now)[:10]:
        return time
    day = f"{int(date[8:10])} {MONTHS[int(date[5:7]) - 1]}"
    return f"{day} {time}" if date[:4] == format_instant(now)[:4] else f"{day} {date[:4]} {time}"


def time_tag(value: Any, now: int, *, seconds: bool = True, fraction: bool = False) -> Markup:
    """A `<time>` with the exact instant behind it."""
    at = instant(value)
    if at is None:
        return Markup('<span class="dim">never</span>')
    exact = format_instant(at)
    label = clock_text(at, now, seconds=seconds, fraction=fraction)
    return element('<time datetime="{}" title="{} UTC">{}</time>', exact, exact[:-1].replace("T", " "), label)


def drawn_instant(at: int, now: int) -> Markup:
    """The same in a drawing, where a `<time>` has no place."""
    return element('<tspan data-at="{}">{}</tspan>', format_instant(at), clock_text(at, now))


def span_text(us: int) -> str:
    """`3 d 14 h`, `41 min`, `2.7 s`, `19 ms`: at most two units."""
    us = abs(us)
    if us < SECOND:
        return f"{us // 1000} ms"
    if us < 10 * SECOND:
        return f"{us / SECOND:.1f} s".replace(".0 s", " s")
    parts: list[str] = []
    for size, unit in UNITS:
        count, us = divmod(us, size)
        if count or parts:
            parts.append(f"{count} {unit}")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if not part.startswith("0 "))


def age_text(value: Any, now: int) -> str:
    """How long ago, or in how long."""
    at = instant(value)
    if at is None:
        return ""
    if abs(at - now) < SECOND:
        return "just now"
    return f"in {span_text(at - now)}" if at > now else f"{span_text(now - at)} ago"


def number_text(value: Any) -> str:
    """`1,284`; a fraction keeps two digits."""
    if value is None:
        return NONE_TEXT
    if isinstance(value, float):
        return f"{value:,.2f}".rstrip("0").rstrip(".") if value < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def short_key(key: str, length: int = KEY_LENGTH) -> str:
    """A long key with its middle cut out; the whole of it stays in the title and goes to the clipboard."""
    if len(key) <= length:
        return key
    tail = length // 3
    return f"{key[: length - tail - 1]}…{key[-tail:]}"


def plural(count: int, one: str, many: str = "") -> str:
    return f"{number_text(count)} {one if count == 1 else many or one + 's'}"


def link(path: str, query: Mapping[str, Any] | None = None, **more: Any) -> str:
    """A console address; empty values are left out."""
    given = {**(query or {}), **more}
    text = urlencode({name: value for name, value in given.items() if value not in ("", None, False)})
    return f"/console{path}?{text}" if text else f"/console{path}"


def story_link(key: str) -> str:
    return link("/story", key=key)


def with_code(text: Any) -> Markup:
    """Text in which what stands between backticks is code."""
    parts = str(text or "").split("`")
    if len(parts) == 1 or len(parts) % 2 == 0:  # none, or one without its other
        return escape(text)
    inner = Markup("").join(
        element("<code>{}</code>", part) if at % 2 else escape(part) for at, part in enumerate(parts)
    )
    return Markup("<span>{}</span>").format(inner)


def lines(text: Any) -> Markup:
    """Text whose line breaks are kept."""
    return Markup("<br>").join(escape(part) for part in str(text).splitlines())
