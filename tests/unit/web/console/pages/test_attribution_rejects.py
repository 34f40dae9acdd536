"""What the counts of rejects count."""

from patra.web.console.pages.attribution_rejects import rejects_shown


def test_an_event_that_is_rejected_again_is_one_event() -> None:
    assert rejects_shown([{"count": 1}, {"count": 2}], refused=False) == "2 rejected events, rejected 3 times"
    assert rejects_shown([{"count": 1}], refused=False) == "1 rejected event"
    assert rejects_shown([{}, {}], refused=True) == "2 batches"
