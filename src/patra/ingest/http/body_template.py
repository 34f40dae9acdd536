"""The body of a request as its pack writes it: a form, JSON or a text, with its expressions (ch. 4.2)."""

from collections.abc import Callable
from typing import Any, cast

import msgspec

from patra.ingest.expressions.escaping import Pairs, Refusal, encoded_pairs, xml_text
from patra.ingest.expressions.template import Template
from patra.ingest.expressions.values import Context, Instant, Span, text_of
from patra.ingest.packs.sections import Body
from patra.ingest.vocabulary.codes import BodyKind
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.errors import Invalid


class BodyRenderer:
    """One leg's body, compiled. `compiled` makes a template of a text, with the names that the leg knows."""

    def __init__(self, body: Body, compiled: Callable[[str], Template]) -> None:
        self._kind = body.kind
        self._json: Any = _compiled_json(body.json, compiled) if body.kind is BodyKind.JSON else None
        self._text = compiled(body.text)

    def render(self, context: Context, form: Pairs, extra: Pairs) -> tuple[str | None, bytes | None]:
        """Media type and bytes; `extra` are values that go into the body from elsewhere. Raises Refusal."""
        match self._kind:
            case BodyKind.NONE:
                return None, None
            case BodyKind.FORM:
                return "application/x-www-form-urlencoded", encoded_pairs([*form, *extra], "", plus=True).encode()
            case BodyKind.JSON:
                value = _json_value(self._json, context)
                if extra and isinstance(value, dict):
                    value = {**cast("dict[str, Any]", value), **dict(extra)}
                return "application/json", msgspec.json.encode(value)
            case BodyKind.XML | BodyKind.TEXT as kind:
                encode: Callable[[str], str] = xml_text if kind is BodyKind.XML else str
                place = "http.bodyTemplate.text"
                try:
                    text = self._text.encode_text(context, encode)
                except Invalid as error:
                    raise Refusal(Reason.RENDER_FAILED, place, error.detail) from error
                if text is None:
                    raise Refusal(Reason.RENDER_FAILED, place, "an expression of the body has no value")
                return ("application/xml" if kind is BodyKind.XML else "text/plain; charset=utf-8"), text.encode()


def evaluate_template(template: Template, context: Context, place: str) -> Any:
    """The value of a template. Raises Refusal with the place that it is for."""
    try:
        return template.value(context)
    except Invalid as error:
        raise Refusal(Reason.RENDER_FAILED, place, error.detail) from error


def rendered_text(value: Any, context: Context, place: str) -> str:
    """A value as text. Raises Refusal with the place that it is for."""
    try:
        return text_of(value, context.env)
    except Invalid as error:
        raise Refusal(Reason.RENDER_FAILED, place, error.detail) from error


def _compiled_json(value: Any, compiled: Callable[[str], Template]) -> Any:
    match value:
        case str():
            return compiled(value)
        case dict():
            return {key: _compiled_json(item, compiled) for key, item in cast("dict[str, Any]", value).items()}
        case list():
            return [_compiled_json(item, compiled) for item in cast("list[Any]", value)]
        case _:
            return value


def _json_value(value: Any, context: Context) -> Any:
    match value:
        case Template():
            found = evaluate_template(value, context, "http.bodyTemplate.json")
            return text_of(found, context.env) if isinstance(found, Instant | Span) else found
        case dict():
            return {key: _json_value(item, context) for key, item in cast("dict[str, Any]", value).items()}
        case list():
            return [_json_value(item, context) for item in cast("list[Any]", value)]
        case _:
            return value
