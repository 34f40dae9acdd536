"""Links to the paragraphs of the specification, by their anchors (`f-3-8-19`, `i-10-3`, `c-5`, `ruling-f9`)."""

_FIRST_OF_FACTS = 17
_INGEST_CHAPTERS = {
    3: "03-registry-contract",
    4: "04-strategy-bits",
    5: "05-two-pipelines",
    6: "06-operations",
    7: "07-data-model",
    8: "08-plans-and-slices",
    9: "09-tasks-runs-and-batches",
    10: "10-cursors-and-watermarks",
    11: "11-idempotency-and-consistency",
    12: "12-errors-and-self-healing",
    13: "13-performance-and-indexes",
    14: "14-observability-and-black-box",
}


def link(anchor: str) -> str:
    """The page and anchor of a paragraph, relative to the documentation's root; empty for no anchor."""
    if not anchor:
        return ""
    kind, _, rest = anchor.partition("-")
    numbers = rest.split("-")
    match kind:
        case "f":
            page = "attribution-facts" if int(numbers[2]) >= _FIRST_OF_FACTS else "attribution"
        case "i":
            page = f"ingest/{_INGEST_CHAPTERS[int(numbers[0])]}"
        case "c":
            page = "event-contracts"
        case "ruling":
            page = "rulings"
        case _:
            raise ValueError(f"{anchor!r} is not an anchor of the specification")
    return f"specification/{page}.html#{anchor}"
