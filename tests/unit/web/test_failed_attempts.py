"""Wrong tokens leave a line in the log and wait longer and longer; each address for itself."""

from structlog.testing import capture_logs

from patra.web.failed_attempts import DELAY_STEP_SECONDS, MAX_ADDRESSES, MAX_DELAY_SECONDS, FailedAttempts
from tests.unit.web.served import served, web_settings


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_answers_to_wrong_tokens_of_one_address_wait_longer_and_longer() -> None:
    clock = Clock()
    failed = FailedAttempts(clock)
    delays = [failed.record("203.0.113.9", "/audit") for _ in range(100)]
    assert delays[:3] == [0.0, DELAY_STEP_SECONDS, 2 * DELAY_STEP_SECONDS]
    assert delays[-1] == MAX_DELAY_SECONDS
    assert failed.record("203.0.113.10", "/audit") == 0.0
    clock.now = 61.0
    assert failed.record("203.0.113.9", "/audit") == 0.0


def test_wrong_tokens_are_told_at_once_and_then_counted() -> None:
    clock = Clock()
    failed = FailedAttempts(clock)
    with capture_logs() as lines:
        for _ in range(1000):
            failed.record("203.0.113.9", "/audit")
        clock.now = 10.0
        failed.record("203.0.113.9", "/audit")
    assert [(line["event"], line["address"], line["attempts"]) for line in lines] == [
        ("http_token_refused", "203.0.113.9", 1),
        ("http_token_refused", "203.0.113.9", 1000),
    ]


def test_addresses_do_not_pile_up() -> None:
    failed = FailedAttempts(Clock())
    for number in range(MAX_ADDRESSES + 10):
        failed.record(str(number), "/")
    assert len(failed._by_address) == MAX_ADDRESSES


def test_a_request_with_a_wrong_token_is_told_and_one_without_a_token_is_not() -> None:
    with served(web_settings(admin_tokens=("sha256:" + "0" * 64,))) as client, capture_logs() as lines:
        assert client.get("/audit").status == 401
        assert client.get("/audit", token="wrong").status == 401
    told = [line for line in lines if line["event"] == "http_token_refused"]
    assert [(line["address"], line["path"]) for line in told] == [("127.0.0.1", "/audit")]
