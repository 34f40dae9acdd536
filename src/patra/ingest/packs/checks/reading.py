"""Response paths, output fields and everything else that is compiled from text (ch. 4.7, 4.8, 4.17 no. 5)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from patra.ingest.expressions.expression import Names
from patra.ingest.expressions.paths import compile_path
from patra.ingest.expressions.scopes import output_names, request_names
from patra.ingest.expressions.template import Template, compile_template, has_expression
from patra.ingest.packs.checks.draft import Draft
from patra.ingest.packs.problems import Problem, TreePath
from patra.ingest.packs.sections import Field
from patra.ingest.packs.work import check_shape
from patra.ingest.vocabulary.codes import BodyKind, OnEqual, Role, UpdateTime
from patra.ingest.vocabulary.instants import time_zone
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.errors import Invalid

TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""Characters of a header's name (RFC 9110)."""


def check_paths(draft: Draft) -> Iterator[Problem]:
    response = draft.at.response
    if not response.items_path:
        yield draft.error(Reason.PATHS_INCOMPLETE, ("response", "itemsPath"), "itemsPath is missing", "$.items")
    if not response.id_path:
        yield draft.error(Reason.PATHS_INCOMPLETE, ("response", "idPath"), "idPath is missing", "$.id")
    timeless = response.update_time is UpdateTime.NONE and response.on_equal is OnEqual.CONTENT
    if not response.updated_at_path and not timeless:
        if draft.has_details:
            yield draft.warning(
                Reason.NO_UPDATED_AT,
                ("response", "updatedAtPath"),
                "the ids carry no update time: it comes with the details",
            )
        else:
            yield draft.error(
                Reason.PATHS_INCOMPLETE,
                ("response", "updatedAtPath"),
                "updatedAtPath is missing",
                "$.updated; without one: updateTime: NONE and onEqual: CONTENT, or window.substituteKey",
            )
    yield from _update_time(draft)
    for path in _response_paths(draft):
        yield from _path(draft, *path)
    for name in draft.merged.rules:
        rule = draft.at.errors[name]
        if rule.path is not None:
            yield from _path(draft, ("errors", name, "path"), rule.path)
    yield from _zone(draft, ("window", "sourceTimezone"), draft.at.window.source_timezone)
    yield from _zone(draft, ("expr", "timezone"), draft.at.expr.timezone)


_PUBLICATION = re.compile(r"publi(?:shed|cation)|pub_?(?:date|year)|issued|\byear\b", re.IGNORECASE)
"""A path to a date of publication, by its name."""


def _update_time(draft: Draft) -> Iterator[Problem]:
    """A record whose update time stays while it changes would never be refreshed (ruling I14)."""
    response = draft.at.response
    if response.version_path is not None or response.on_equal is OnEqual.CONTENT:
        return
    looks = _PUBLICATION.search(response.updated_at_path) is not None
    if response.update_time is not UpdateTime.CHANGED or looks:
        yield draft.warning(
            Reason.UPDATE_TIME_STILL,
            ("response", "updatedAtPath"),
            f"{response.updated_at_path} stays the same when a record changes: a changed one is taken for a known one",
            "updateTime: PUBLISHED and onEqual: CONTENT, or a versionPath",
        )


def check_output(draft: Draft) -> Iterator[Problem]:
    yield from _fields(draft, draft.at.output.fields, ("output", "fields"), item=False)
    for wrong in check_shape(draft.at.output):
        yield draft.error(Reason.SHAPE_INVALID, ("output", *wrong.path), wrong.message, wrong.advice)


def request_templates(draft: Draft, found: list[Problem]) -> dict[TreePath, Template]:
    """Every template of the request, compiled, by its place; named expressions first; problems go into `found`."""
    names: dict[str, frozenset[str] | None] = dict(
        request_names(draft.at.params, draft.secrets, (), detail=draft.second or draft.endpoint.role is Role.DETAIL)
    )
    out: dict[TreePath, Template] = {}

    def add(at: TreePath, value: Any, names: Names) -> None:
        for place, text in _texts(at, value):
            if (template := _template(draft, place, text, names, found)) is not None:
                out[place] = template

    defined: list[str] = []
    for name, text in draft.at.expr.vars.items():
        add(("expr", "vars", name), text, names)
        defined.append(name)
        names["expr"] = frozenset(defined)
    http = draft.at.http
    without_secrets = {**names, "credential": frozenset[str]()}
    add(("http", "pathTemplate"), http.path_template, without_secrets)
    add(("http", "userAgent"), http.user_agent, without_secrets)
    for name, text in http.headers_template.items():
        add(("http", "headersTemplate", name), text, names)
        if not name or set(name) - TOKEN:
            found.append(
                draft.error(Reason.EXPR_INVALID, ("http", "headersTemplate", name), f"{name!r} is not a header's name")
            )
    add(("http", "queryTemplate"), http.query_template, names)
    add(("http", "nextQueryTemplate"), http.next_query_template or {}, names)
    body = http.body_template
    if body.kind is BodyKind.FORM:
        add(("http", "bodyTemplate", "fields"), body.fields, names)
    elif body.kind is BodyKind.JSON:
        add(("http", "bodyTemplate", "json"), body.json, names)
    elif body.kind is not BodyKind.NONE:
        add(("http", "bodyTemplate", "text"), body.text, names)
    for name, param in draft.at.params.items():
        if param.expr is not None:
            add(("params", name, "expr"), param.expr, without_secrets)
    return out


def _response_paths(draft: Draft) -> Iterator[tuple[TreePath, str]]:
    response, pagination = draft.at.response, draft.at.pagination
    for section, name, text in (
        ("response", "itemsPath", response.items_path),
        ("response", "idPath", response.id_path),
        ("response", "updatedAtPath", response.updated_at_path),
        ("response", "versionPath", response.version_path),
        ("response", "deletedPath", response.deleted_path),
        ("response", "hasMorePath", response.has_more_path),
        ("response", "totalPath", response.total_path),
        ("pagination", "nextTokenPath", pagination.next_token_path),
        ("pagination", "nextUrlPath", pagination.next_url_path),
    ):
        if text:
            yield (section, name), text


def _path(draft: Draft, at: TreePath, text: str) -> Iterator[Problem]:
    try:
        compile_path(text, draft.at.response.format, draft.at.response.namespaces)
    except Invalid as error:
        yield draft.error(Reason.PATH_INVALID, at, error.detail, error.advice)


def _fields(draft: Draft, fields: Mapping[str, Field | str], at: TreePath, *, item: bool) -> Iterator[Problem]:
    above: list[str] = []
    for name, field in fields.items():
        place = (*at, name)
        if isinstance(field, str):
            yield from _field(
                draft, Field(expr=field) if has_expression(field) else Field(path=field), place, above, item=item
            )
        else:
            yield from _field(draft, field, place, above, item=item)
            if field.fields:
                yield from _fields(draft, field.fields, (*place, "fields"), item=item or field.each is not None)
        above.append(name)


def _field(draft: Draft, field: Field, place: TreePath, above: list[str], *, item: bool) -> Iterator[Problem]:
    for name, text in (("path", field.path), ("each", field.each)):
        if text is not None:
            yield from _path(draft, place if draft.merged.origins.get((*place, name)) is None else (*place, name), text)
    if field.expr is not None:
        found: list[Problem] = []
        _template(draft, place, field.expr, output_names(draft.at.params, above, item=item), found)
        yield from found
    if field.each is not None and not field.fields:
        yield draft.error(Reason.PATHS_INCOMPLETE, place, "`each` needs `fields`: what is read for each item")
    if field.path is None and field.expr is None and not field.fields and field.default is None:
        yield draft.error(Reason.PATHS_INCOMPLETE, place, "the field has neither path, expr, fields nor default")


def _texts(at: TreePath, value: Any) -> Iterator[tuple[TreePath, str]]:
    """The texts inside a structure, each with its place."""
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield from _texts((*at, key), item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _texts((*at, index), item)


def _template(draft: Draft, at: TreePath, text: str, names: Names, found: list[Problem]) -> Template | None:
    try:
        return compile_template(text, names, draft.at.expr.allowed_functions)
    except Invalid as error:
        found.append(draft.error(Reason.EXPR_INVALID, at, error.detail, error.advice))
        return None


def _zone(draft: Draft, at: TreePath, name: str) -> Iterator[Problem]:
    try:
        time_zone(name)
    except Invalid as error:
        yield draft.error(Reason.WINDOW_INVALID, at, error.detail, error.advice)
