"""How an answer is read: expressions, response paths, error rules, output mapping (ch. 4.7, 4.8, 4.13)."""
# ruff: noqa: RUF012  msgspec gives each struct an empty default of its own

from typing import Annotated, Any

from patra.ingest.packs.sections.base import IDENTIFIER, Bit, Duration, Path, Pattern, Template, doc
from patra.ingest.vocabulary.codes import (
    FieldType,
    MissingItems,
    NullPolicy,
    OnEqual,
    Outcome,
    ResponseFormat,
    UpdateTime,
)


class Expr(Bit, frozen=True, kw_only=True):
    """What expressions may do (ch. 4.8)."""

    allowed_functions: Annotated[
        list[Annotated[str, doc("A function.", "coalesce", kind="function")]] | None,
        doc(
            "Functions that the pack's expressions may call; absent allows the whole list of the platform.",
            ["coalesce"],
        ),
    ] = None
    null_policy: Annotated[NullPolicy, doc("What becomes of a parameter without a value.", "omit")] = NullPolicy.OMIT
    time_format: Annotated[
        str, doc("How an instant is written where an expression does not say.", "yyyy-MM-dd", kind="format")
    ] = "ISO"
    timezone: Annotated[str, doc("Zone in which instants are written.", "UTC")] = "UTC"
    vars: Annotated[
        dict[Annotated[str, doc("Its name.", "q", pattern=IDENTIFIER)], Template],
        doc(
            "Named expressions, read as `${expr.name}`; one may use those before it.",
            {"q": "${params.term} AND english[la]"},
        ),
    ] = {}
    max_output: Annotated[
        int, doc("Longest text that an expression may give, in characters.", 65_536, ge=1, le=1_048_576)
    ] = 65_536


class Response(Bit, frozen=True, kw_only=True):
    """Where things stand in an answer (ch. 4.7). Paths are JSONPath for JSON and XPath 1.0 for XML."""

    format: Annotated[ResponseFormat, doc("What the body is.", "XML")] = ResponseFormat.JSON
    decoder: Annotated[
        str | None,
        doc("Name of the extension that turns a body into JSON or XML before it is read as `format`.", "csv"),
    ] = None
    items_path: Annotated[Path, doc("The records, or the ids, of a page.", "$.message.items")] = ""
    id_path: Annotated[Path, doc("The provider's id of a record, relative to it.", "$.DOI")] = ""
    id_apply: Annotated[
        list[Annotated[str, doc("A cleaner.", "arxiv", kind="apply")]],
        doc("Cleaners that make the id what it stays for all versions of a record.", ["arxiv"]),
    ] = []
    updated_at_path: Annotated[
        Path, doc("When the record was last changed, relative to it.", "$.indexed['date-time']")
    ] = ""
    updated_at_format: Annotated[
        tuple[Annotated[str, doc("A format.", "ISO", kind="format")], ...],
        doc(
            "How it is written, tried in order: AUTO, ISO, EPOCH_S, EPOCH_MS, DATE_PARTS, or a pattern as yyyy/MM/dd.",
            ["yyyy/MM/dd HH:mm"],
        ),
    ] = ("AUTO",)
    version_path: Annotated[
        Path | None, doc("A version number that decides between records of the same update time.", "$.version")
    ] = None
    update_time: Annotated[UpdateTime, doc("What the time at `updatedAtPath` means.", "PUBLISHED")] = UpdateTime.CHANGED
    on_equal: Annotated[
        OnEqual,
        doc(
            "What becomes of a record with the update time and version of the stored one (ruling I14).",
            "CONTENT",
        ),
    ] = OnEqual.KEEP
    deleted_path: Annotated[Path | None, doc("What marks a record as deleted.", "o:header/@status")] = None
    deleted_values: Annotated[list[str], doc("Values that mean deleted; none named means any value.", ["deleted"])] = []
    has_more_path: Annotated[Path | None, doc("Whether there is a next page.", "$.hasMore")] = None
    total_path: Annotated[Path | None, doc("How many records the query has.", "$.message['total-results']")] = None
    items_missing: Annotated[
        MissingItems,
        doc(
            "What an answer without `itemsPath` means: an error, or an empty page unless its total or the list so far "
            "promises records.",
            "EMPTY",
        ),
    ] = MissingItems.FAIL
    namespaces: Annotated[
        dict[Annotated[str, doc("A prefix.", "o", pattern=IDENTIFIER)], str],
        doc("XML: prefixes that the paths use.", {"o": "http://www.openarchives.org/OAI/2.0/"}),
    ] = {}
    content_types: Annotated[
        list[str], doc("Content types that are right; any other is classified as an error page.", ["application/json"])
    ] = []


class ErrorRule(Bit, frozen=True, kw_only=True):
    """One line of the classification table; the first rule whose conditions all hold decides (ch. 12)."""

    status: Annotated[
        list[Annotated[str | int, doc("A status or a class of statuses.", "5xx")]],
        doc("Statuses, or classes such as `4xx`; none named means any.", [400]),
    ] = []
    content_type: Annotated[str | None, doc("Beginning of the content type.", "text/html")] = None
    header: Annotated[str | None, doc("A header that must be there.", "X-Error")] = None
    path: Annotated[Path | None, doc("A path that must give something.", "//o:error/@code")] = None
    equals: Annotated[list[str], doc("What the path gives must be one of these.", ["noRecordsMatch"])] = []
    pattern: Annotated[
        Pattern | None, doc("Found in what the path gives, or in the beginning of the body without a path.", "Timeout")
    ] = None
    outcome: Annotated[Outcome, doc("What it means.", "EMPTY")]
    retry_after: Annotated[Duration | None, doc("L1: how long to wait at least.", "PT1M")] = None
    advice: Annotated[str, doc("What an operator should do.", "Check the key in NCBI_API_KEY")] = ""


class NamedRule(ErrorRule, frozen=True, kw_only=True):
    """A rule with its key, as a snapshot holds it."""

    name: Annotated[str, doc("Its key under `errors`; shown in the batch row.", "no_records_match")] = ""


class Field(Bit, frozen=True, kw_only=True):
    """One field of the output. A plain text in its place is a path, or an expression if it contains `${`."""

    path: Annotated[
        Path | None, doc("Where it stands, relative to the record (or to the item of `each`).", "$.title[0]")
    ] = None
    expr: Annotated[
        Template | None,
        doc(
            "Computes it. `value` is what `path` gave, `fields.x` a field above, `record` the record.",
            "${lower(value)}",
        ),
    ] = None
    all: Annotated[bool, doc("All that the path gives, as a list; otherwise the first.", True)] = False
    each: Annotated[
        Path | None, doc("A list: `fields` is read for each thing that this path gives.", "$.author[*]")
    ] = None
    fields: Annotated[
        "dict[str, Field | str]", doc("An object, or with `each` a list of objects.", {"family": "$.family"})
    ] = {}
    apply: Annotated[
        list[Annotated[str, doc("A cleaner.", "text", kind="apply")]],
        doc("Cleaners in order: text, doi, orcid, lower, upper, strip, url, first, uninvert, …", ["text"]),
    ] = []
    type: Annotated[FieldType, doc("What it must become.", "INT")] = FieldType.JSON
    format: Annotated[
        tuple[Annotated[str, doc("A format.", "ISO", kind="format")], ...],
        doc("INSTANT and DATE: how it is written, as in `updatedAtFormat`.", ["DATE_PARTS"]),
    ] = ("AUTO",)
    map: Annotated[
        dict[str, str], doc("Values by value; what is not listed stays.", {"journal-article": "article"})
    ] = {}
    enum: Annotated[
        tuple[Annotated[str, doc("A value.", "article")], ...],
        doc("The values it may have; a record with another one goes to the quarantine (L3).", ["article", "book"]),
    ] = ()
    default: Annotated[Any, doc("Its value where nothing was found.", "unknown")] = None
    required: Annotated[bool, doc("A record without it goes to the quarantine (L3).", True)] = False


class Output(Bit, frozen=True, kw_only=True):
    """What becomes of a record."""

    shape: Annotated[str, doc("`work` (the common shape) or `raw` (the fields as named).", "work")] = "raw"
    fields: Annotated[
        dict[Annotated[str, doc("Its name.", "title", pattern=IDENTIFIER)], Field | str],
        doc("Fields by name.", {"title": "$.title[0]"}),
    ] = {}
    keep_raw: Annotated[bool, doc("Keep the record as it came beside the fields.", True)] = True
