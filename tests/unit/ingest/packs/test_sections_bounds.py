"""The upper bound of a window is rendered from what the pack declares, and never leaves something out (ruling I11)."""

import pytest

from patra.ingest.packs import bundled
from patra.ingest.packs.sections import Window
from patra.ingest.vocabulary.codes import Bounds, Precision
from patra.kernel.clock import format_instant, parse_instant


def sent(end: str, bounds: Bounds | None, precision: Precision | None) -> str:
    return format_instant(Window(bounds=bounds, precision=precision).until_us(parse_instant(end) or 0))


@pytest.mark.parametrize(
    ("bounds", "precision", "end", "until"),
    [
        (None, None, "2026-03-02T00:00:00Z", "2026-03-02T00:00:00Z"),
        (None, Precision.DAY, "2026-03-02T00:00:00Z", "2026-03-02T00:00:00Z"),
        (Bounds.INCLUSIVE, None, "2026-03-02T00:00:00Z", "2026-03-02T00:00:00Z"),
        (Bounds.INCLUSIVE, Precision.DAY, "2026-03-02T00:00:00Z", "2026-03-01T23:59:59.999000Z"),
        (Bounds.INCLUSIVE, Precision.DAY, "2026-03-02T13:00:00Z", "2026-03-02T23:59:59.999000Z"),
        (Bounds.INCLUSIVE, Precision.SECOND, "2026-03-02T13:00:00Z", "2026-03-02T12:59:59.999000Z"),
        (Bounds.INCLUSIVE, Precision.MILLISECOND, "2026-03-02T13:00:00Z", "2026-03-02T12:59:59.999000Z"),
        (Bounds.EXCLUSIVE, Precision.DAY, "2026-03-02T00:00:00Z", "2026-03-02T00:00:00Z"),
        (Bounds.EXCLUSIVE, Precision.DAY, "2026-03-02T13:00:00Z", "2026-03-03T00:00:00Z"),
        (Bounds.EXCLUSIVE, Precision.MINUTE, "2026-03-02T13:00:00Z", "2026-03-02T13:00:00Z"),
    ],
)
def test_the_upper_bound_is_the_one_that_is_declared(bounds, precision, end: str, until: str) -> None:
    assert sent(end, bounds, precision) == until


def test_no_shipped_pack_subtracts_from_the_end_of_a_window() -> None:
    for name in bundled.names():
        assert "window.to -" not in bundled.text(name), name
