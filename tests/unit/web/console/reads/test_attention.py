"""The counts of the navigation: shared by all pages, and never older than the act that a page follows."""

from time import monotonic

from patra.web.auth import LOCAL
from patra.web.console.reads.attention import Counts


def test_pages_share_what_was_read_lately_and_what_follows_an_act_is_read_again() -> None:
    found = iter([{"dead_letters": 4}, {"dead_letters": 3}])
    counts = Counts(lambda _: next(found))
    assert [counts.now(LOCAL)["dead_letters"] for _ in range(2)] == [4, 4]
    done_at = monotonic()
    assert counts.now(LOCAL, not_before=done_at)["dead_letters"] == 3
    assert counts.now(LOCAL, not_before=done_at)["dead_letters"] == 3
