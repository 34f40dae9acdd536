"""Turns a record as it came into the fields of the output, or the one at fault and why (ch. 3.3.4, 4.8).

Compiled once for an endpoint (`mapping_code`). A field is found (`path`, `each`, `fields`), computed (`expr`), cleaned
(`apply`), translated (`map`), made what it must be (`type`) and, where nothing was found, filled in (`default`). What
is nothing is left out; a field whose name begins with `_` is only there for those below it. A flaw is data pollution
(L3): the record goes to the quarantine, the others go on.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from lxml import etree

from patra.ingest.expressions.paths import Steps
from patra.ingest.expressions.values import Env
from patra.ingest.extraction.field_types import Flaw
from patra.ingest.extraction.mapping_code import MappingCode
from patra.ingest.packs.sections import Expr, Output, Response

__all__ = ["Flaw", "Mapper", "raw_of"]


class Mapper:
    """The output of one endpoint, compiled. Raises Invalid when it is built from what never passed the checks."""

    def __init__(
        self, output: Output, response: Response, expr: Expr, params: Mapping[str, Any], zone: str = "UTC"
    ) -> None:
        self.output = output
        code = MappingCode(response, expr, params, zone)
        self._parts = code.functions(output.fields)
        self._needs = tuple(code.needs)
        self._env = Env(now=0, time_format=expr.time_format, zone=expr.timezone, max_text=expr.max_output)

    def __call__(self, record: Any, now: int, plan: Mapping[str, Any] | None = None) -> dict[str, Any] | Flaw:
        """The fields of a record, JSON values all of them."""
        return self.all([record], now, plan or {})[0]

    def all(self, records: Sequence[Any], now: int, plan: Mapping[str, Any]) -> list[dict[str, Any] | Flaw]:
        """The fields of each record. Some fields are looked for in all of them before the next ones (decision 0082)."""
        env = self._env
        if env.now != now:
            env = self._env = msgspec.structs.replace(env, now=now)  # the records of a page have one instant
        found: list[dict[str, Any]] = [{} for _ in records]
        flaws: dict[int, Flaw] = {}
        nothing: dict[str, Any] = {}
        objects = [cast("dict[str, Any]", record) if type(record) is dict else nothing for record in records]
        left = list(zip(range(len(found)), records, objects, found, strict=True))
        for part in self._parts:
            known = len(flaws)
            part(left, flaws, env, plan)
            if len(flaws) > known:
                left = [one for one in left if one[0] not in flaws]
        return [flaws.get(at, fields) for at, fields in enumerate(found)] if flaws else [*found]

    @property
    def needs(self) -> tuple[Steps, ...]:
        """How far the fields look into the record; no steps: all of it."""
        return self._needs


def raw_of(record: Any) -> Any:
    """The record as it came, for keeping: JSON stays JSON, an element becomes the text of its XML."""
    if type(record) is msgspec.Raw:
        return record
    if isinstance(record, bytes):  # XML that was set apart
        return record.decode()
    if isinstance(record, etree._Element):  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  lxml exports no public name
        return etree.tostring(record, encoding="unicode", with_tail=False)
    return record
