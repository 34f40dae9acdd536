"""What a window promised against what came; lists by time through the real executor."""

import pytest

from patra.ingest.extraction.completeness import NamelessItems
from patra.kernel.clock import MINUTE, format_instant
from tests.unit.ingest.packs.effects.observe import built
from tests.unit.ingest.packs.effects.stand_in import T0, Reply, as_json, site

BY_TIME = {
    "path": "/time",
    "http.queryTemplate.offset": None,
    "http.queryTemplate.from": "${page.from}",
    "pagination": {"type": "TIME", "pageSize": 10},
    "ordering": {"orderBy": "updated asc", "ascending": True, "stable": True, "monotonic": True},
}


def test_an_item_without_an_id_counts_once_however_many_pages_hold_it() -> None:
    met = NamelessItems()
    assert met.fresh([1, 2, 2]) == 3
    met.add([1, 2, 2])
    assert met.fresh([2, 2]) == 0
    assert met.fresh([2, 2, 2, 3]) == 2


def record(number: int, *, nameless: bool = False) -> dict:
    name = {} if nameless else {"id": f"r{number}"}
    return {**name, "updated": format_instant(T0 + (number + 1) * MINUTE), "title": f"Title {number}"}


@pytest.mark.parametrize(("total", "status", "missing"), [(15, "SUCCEEDED", 0), (16, "FAILED", 1)])
def test_a_list_by_time_with_an_item_without_an_id_adds_up_over_its_pages(
    total: int, status: str, missing: int
) -> None:
    """The item stands on both pages; it is in the quarantine once, and counts once: it hides no missing record."""
    items = [record(number, nameless=number == 9) for number in range(15)]
    pages = [items[:10], items[8:]]

    def answer(number: int, _request: object) -> Reply:
        page = (number - 1) % 2
        return as_json({"items": pages[page], "total": (total, 7)[page]})

    with site(script=answer) as s:
        s.load(built(BY_TIME))
        s.trigger()
        s.drain()
        assert s.rows("SELECT count(*) FROM ing_quarantine") == [(1,)]
        assert s.rows("SELECT DISTINCT status_code FROM ing_task") == [(status,)]
        assert s.rows("SELECT missing FROM ing_window_ledger WHERE leg_code = 'LIST'") == [(missing,)]
