"""Tables of what the packs of the distribution declare of totals, bounds, times and deletions."""

from collections.abc import Iterator, Mapping

from patra.ingest.packs import bundled
from patra.ingest.packs.compiler import LoadedPack
from patra.ingest.packs.schema import Sections, Semantics
from patra.ingest.vocabulary.codes import Role, TotalMeaning

DATE_FILTERS: Mapping[str, str] = {
    "recorded": "recorded",
    "documented": "documented",
    "unproven": "**unproven**",
    "none": "there is none",
}


def semantics_lines() -> Iterator[str]:
    """What each source says of itself, a row a source."""
    yield "## What the providers' numbers and dates mean"
    yield ""
    yield "As each pack declares it (`semantics`), with the provider's documentation as source. The last column says"
    yield "what the filter by date rests on: `recorded`, requests of others that were recorded; `documented`, the"
    yield "provider's documentation or its own source; **unproven**, neither: check it with `patra ingest try SOURCE"
    yield "--live` before you trust a harvest."
    yield ""
    yield "| source | total | bounds | precision | update time | deletions | date filter |"
    yield "|---|---|---|---|---|---|---|"
    for name in bundled.names():
        if (found := bundled.pack(name).pack.semantics) is not None:
            yield _row(name, found)


def _row(name: str, found: Semantics) -> str:
    words = (found.total, found.bounds, found.precision, found.update_time, found.deletions)
    cells = [f"[{name}]({found.source})", *map(_cell, words), DATE_FILTERS[found.date_filter]]
    return "| " + " | ".join(cells) + " |"


def semantics_codes(loaded: LoadedPack, endpoint: str, at: Sections) -> list[str]:
    """The codes of an endpoint that lists: what its total promises, how it is cut."""
    if loaded.pack.endpoints[endpoint].role is Role.DETAIL:
        return ["", "", ""]
    total = at.pagination.total.value if at.response.total_path else "not reported"
    if at.response.total_path and at.pagination.total is TotalMeaning.ESTIMATE:
        total += f", at most {at.pagination.total_tolerance:.0%} too high"
    window = at.window
    if not window.supports_updated_since:
        return [total, "filtered here", ""]
    bounds = "read past the end" if window.bounds is None else window.bounds.value
    return [total, bounds, window.precision.value if window.precision is not None else ""]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
