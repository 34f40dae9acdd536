"""The rules of a mapping (ch. 3.3.4), field by field as they are written down: what the generated functions must equal.

Slow and plain on purpose: nothing is compiled or skipped, no two rules are joined.
"""

from collections.abc import Mapping
from typing import Any

from patra.ingest.expressions.cleaners import clean
from patra.ingest.expressions.paths import compile_path, text_at
from patra.ingest.expressions.scopes import output_names
from patra.ingest.expressions.template import compile_template, has_expression
from patra.ingest.expressions.values import Context, Env, Instant, Span
from patra.ingest.extraction.field_types import CONVERSIONS, FieldFlawed
from patra.ingest.extraction.mapping import Flaw
from patra.ingest.packs.sections import Expr, Field, Output, Response
from patra.ingest.vocabulary.codes import FieldType, ResponseFormat
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import format_instant
from patra.kernel.errors import Invalid


class InterpretedMapping:
    def __init__(self, output: Output, response: Response, expr: Expr, params: Mapping[str, Any]) -> None:
        self.output, self.response, self.expr, self.params = output, response, expr, params
        self.xml = response.format is ResponseFormat.XML

    def __call__(self, record: Any, now: int, plan: Mapping[str, Any]) -> dict[str, Any] | Flaw:
        self.env = Env(
            now=now, time_format=self.expr.time_format, zone=self.expr.timezone, max_text=self.expr.max_output
        )
        self.record, self.plan = record, plan
        try:
            return self.group(self.output.fields, "fields", record, None, within_each=False)
        except FieldFlawed as flawed:
            return flawed.flaw

    def group(self, fields: Any, at: str, node: Any, item: Any, *, within_each: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        above: list[str] = []
        for name, given in fields.items():
            field = given
            if isinstance(given, str):
                field = Field(expr=given) if has_expression(given) else Field(path=given)
            value = self.field(field, f"{at}.{name}", node, item, found, above, within_each=within_each)
            if value is not None:
                found[name] = value
            above.append(name)
        return {name: value for name, value in found.items() if not name.startswith("_")}

    def field(self, field: Any, place: str, node: Any, item: Any, found: Any, above: Any, *, within_each: bool) -> Any:
        if field.expr is None:
            value = self.value(field, place, node, within_each=within_each)
        else:
            names = output_names(self.params, above, item=within_each)
            template = compile_template(field.expr, names, self.expr.allowed_functions)
            try:
                value = template.value(
                    Context(
                        {
                            "plan": self.plan,
                            "params": self.params,
                            "fields": found,
                            "record": self.record,
                            "item": item,
                            "value": self.value(field, place, node, within_each=within_each),
                        },
                        self.env,
                    )
                )
            except Invalid as error:
                raise FieldFlawed(RunReason.FIELD_FAILED, place, error.detail) from error
            if isinstance(value, Instant):
                value = format_instant(value)
            elif isinstance(value, Span):
                value = int(value)
        return self.finished(field, place, value)

    def value(self, field: Any, place: str, node: Any, *, within_each: bool) -> Any:
        source = field.path if field.each is None or not field.fields else field.each
        path = None if source is None else compile_path(source, self.response.format, self.response.namespaces)
        if field.fields:
            if path is None:
                return self.group(field.fields, place, node, node, within_each=within_each) or None
            if field.each is None:
                part = path.first(node)
                return None if part is None else self.group(field.fields, place, part, part, within_each=within_each)
            made = [self.group(field.fields, place, part, part, within_each=True) for part in path.find(node)]
            return [one for one in made if one] or None
        if path is None:
            return None
        if field.all:
            values = [text_at(part) if self.xml else part for part in path.find(node)]
            return [one for one in values if one not in (None, "")] or None
        return (text_at(path.first(node)) or None) if self.xml else path.first(node)

    def finished(self, field: Any, place: str, value: Any) -> Any:
        value = clean(field.apply, value)
        if field.map:
            value = self.translated(value, field.map)
        if field.type is not FieldType.JSON and value is not None:
            try:
                value = CONVERSIONS[field.type](value, field.format, "UTC")
            except (ValueError, Invalid) as error:
                raise FieldFlawed(RunReason.FIELD_INVALID, place, "") from error
        if field.enum and value is not None:
            for one in value if isinstance(value, list) else [value]:
                if text_at(one) not in field.enum:
                    raise FieldFlawed(RunReason.FIELD_INVALID, place, "")
        if value is None and field.default is not None:
            return field.default
        if value is None and field.required:
            raise FieldFlawed(RunReason.FIELD_MISSING, place, "the record does not have it, and it is required")
        return value

    def translated(self, value: Any, names: Mapping[str, str]) -> Any:
        if isinstance(value, list):
            return [self.translated(one, names) for one in value]
        key = text_at(value)
        return value if key is None else names.get(key, value)
