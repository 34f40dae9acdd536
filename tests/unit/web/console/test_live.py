"""What live pages share, and what they must not be sent."""

import pytest

from patra.web.console import live as live_module
from patra.web.console.live import Live

KEY = ("/console/bus/type/task.submitted?", "operator")


@pytest.fixture(autouse=True)
def shared_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that stands still for a second changes nothing."""
    monkeypatch.setattr(live_module, "SHARE_S", 1e9)


def test_pages_of_one_address_share_what_was_read_within_the_last_second():
    live, contents = Live(), iter(["open"])
    assert [live.fragment(KEY, lambda: next(contents), 0.0).text for _ in range(2)] == ["open", "open"]


def test_a_page_is_not_set_back_to_what_was_read_before_it_connected():
    live = Live()
    before = live.fragment(KEY, lambda: "open", 0.0)
    after = live.fragment(KEY, lambda: "frozen", before.begun_at + 0.000_001)
    assert after.text == "frozen"
    assert live.fragment(KEY, lambda: "never made", after.begun_at) is after


def test_what_was_begun_earlier_and_ended_later_does_not_replace_newer_content():
    live = Live()

    def slow() -> str:
        live.fragment(KEY, lambda: "frozen", 0.0)
        return "open"

    live.fragment(KEY, slow, 0.0)
    assert live.fragment(KEY, lambda: "never made", 0.0).text == "frozen"
