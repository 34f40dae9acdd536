"""A lease is renewed while its work is under way, and the work learns when to stop."""

import threading

from patra.studio.heartbeat import Heartbeat

TTL = 4_000  # microseconds: a beat each millisecond


def test_a_heartbeat_renews_until_its_work_ends_and_goes_on_over_an_outage() -> None:
    beats, enough = [], threading.Event()

    def renew() -> bool:
        beats.append(1)
        if len(beats) == 1:
            raise RuntimeError("the store is away")
        if len(beats) >= 3:
            enough.set()
        return True

    with Heartbeat("job", renew, ttl=TTL, leaving=threading.Event()) as heart:
        assert enough.wait(30)
        assert not heart.stop()
    ended = len(beats)
    assert ended >= 3
    assert not any(thread.name == "heartbeat job" for thread in threading.enumerate())


def test_a_lost_lease_stops_the_work() -> None:
    asked = threading.Event()

    def renew() -> bool:
        asked.set()
        return False

    heart = Heartbeat("job", renew, ttl=TTL, leaving=threading.Event())
    with heart:
        assert asked.wait(30)
    assert heart.stop()


def test_a_process_that_leaves_and_a_job_that_takes_too_long_stop_the_work() -> None:
    leaving = threading.Event()
    heart = Heartbeat("job", lambda: True, ttl=TTL, leaving=leaving)
    assert (heart.stop(), heart.too_long) == (False, False)
    leaving.set()
    assert (heart.stop(), heart.too_long) == (True, False)
    late = Heartbeat("job", lambda: True, ttl=TTL, leaving=threading.Event(), seconds=-1.0)
    assert (late.stop(), late.too_long) == (True, True)
