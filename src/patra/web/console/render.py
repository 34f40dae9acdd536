"""Jinja with everything escaped and nothing undefined; the functions that templates may call."""

import shlex
from functools import cache
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from patra.kernel.safety.redact import redact_text
from patra.web.console.act import act_href
from patra.web.console.acts import ACTS
from patra.web.console.assets import asset_url
from patra.web.console.markup import drawings, formats, json_view
from patra.web.console.markup.masked_text import masked_text, remember_masked
from patra.web.console.markup.row_choice import choice_bar, choice_box
from patra.web.console.markup.tones import tone_of
from patra.web.console.reasons import reason_text

BRIEF_LENGTH = 60


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("patra.web.console", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_without_secrets,
    )
    filters: dict[str, Any] = made.filters
    filters.update(
        number=formats.number_text,
        short=formats.short_key,
        json=json_view.json_markup,
        time=_time,
        minute=_minute,
        moment=_moment,
        age=_age,
        is_instant=_is_instant,
        span=formats.span_text,
        broken_lines=_broken_lines,
        with_code=_with_code,
        as_it_is=escape,
        quoted=shlex.quote,
        brief_json=_brief_json,
    )
    functions: dict[str, Any] = made.globals
    functions.update(
        asset=asset_url,
        link=formats.link,
        story_link=formats.story_link,
        tone_of=tone_of,
        reason_text=reason_text,
        plural=formats.plural,
        spark=drawings.spark,
        bars=drawings.bars,
        act=_act,
        choice_bar=_choice_bar,
        choice_box=choice_box,
        line_count=json_view.line_count,
    )
    functions["c"] = made.get_template("macros.html").module
    return made


def _without_secrets(value: Any) -> Any:
    """What every expression of a template passes on its way to the page: no secret, no person's address."""
    if value is None or isinstance(value, (bool, int, float)) or hasattr(value, "__html__"):
        return value
    return masked_text(str(value))


def _broken_lines(text: Any) -> Markup:
    return formats.lines(redact_text(str(text)))


def _with_code(text: Any) -> Markup:
    return formats.with_code(redact_text(str(text or "")))


def _is_instant(value: Any) -> bool:
    """Whether a text is one; of a number nobody knows."""
    return isinstance(value, str) and formats.instant(value) is not None


def _brief_json(value: Any) -> str:
    """A value in a line; plain text, so that it is escaped and looked through for secrets like any other."""
    return formats.short_key(msgspec.json.encode(value).decode(), BRIEF_LENGTH)


def render(template: str, values: dict[str, Any]) -> str:
    with remember_masked():
        return environment().get_template(template).render(values)


@pass_context
def _time(context: Context, value: Any) -> Markup:
    return formats.time_tag(value, context["now"])


@pass_context
def _minute(context: Context, value: Any) -> Markup:
    return formats.time_tag(value, context["now"], seconds=False)


@pass_context
def _moment(context: Context, value: Any) -> Markup:
    return formats.time_tag(value, context["now"], fraction=True)


@pass_context
def _age(context: Context, value: Any) -> str:
    return formats.age_text(value, context["now"])


@pass_context
def _act(context: Context, name: str, label: str, style: str = "", /, **fields: Any) -> Markup:
    """The button of an act, or nothing for those who may not do it.

    With consequences it leads to the act's confirmation (a dialog where there is script); without, it posts at once by
    the page's form, so that a fragment holds no secret and can be shared.
    """
    act = ACTS[name]
    if not context["may"](act.method, act.template):
        return Markup("")
    back = context["here"]
    if act.level == 1:
        href = act_href("do", name, fields, back)
        return Markup('<button class="btn {}" type="submit" form="act-form" formaction="{}">{}</button>').format(
            style, href, label
        )
    href = act_href("confirm", name, fields, back)
    return Markup(
        '<a class="btn {}" href="{}" hx-get="{}" hx-target="#dialog" hx-sync="#dialog:replace">{}</a>'
    ).format(style, href, href, label)


@pass_context
def _choice_bar(context: Context, name: str, acts: list[tuple[str, str]], /, **fields: Any) -> Markup:
    """The form that does one act to the rows that are chosen, with the acts that the visitor may do; or nothing."""
    allowed = [(act, label) for act, label in acts if context["may"](ACTS[act].method, ACTS[act].template)]
    return choice_bar(name, fields, allowed, context["here"]) if allowed else Markup("")


def plain(value: Any) -> Any:
    """Structs as dictionaries, for templates that take both."""
    return msgspec.to_builtins(value)
