"""What the counts of rejects count."""

from patra.web.console.pages.attribution_rejects import rejects_shown, rejects_title


def test_an_event_that_is_rejected_again_is_one_event() -> None:
    assert rejects_shown([{"count": 1}, {"count": 2}], refused=False) == "2 rejected events, rejected 3 times"
    assert rejects_shown([{"count": 1}], refused=False) == "1 rejected event"
    assert rejects_shown([{}, {}], refused=True) == "2 batches"


def test_the_page_says_how_many_were_rejected() -> None:
    assert rejects_title({"count": 1, "more": False}, is_plain=False) == "1 event was rejected"
    assert rejects_title({"count": 10_000, "more": True}, is_plain=False) == "More than 10,000 events were rejected"
    assert rejects_title(None, is_plain=True) == "No event was rejected"
    assert rejects_title(None, is_plain=False) == "Rejects"
