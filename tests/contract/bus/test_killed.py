"""The short form of `./dev prove bus_exactly_once`: hundreds of events instead of a hundred thousand, the same promises."""

from tests.prove.bus_exactly_once import prove, restarting_nats

SHORT = {"events_": 600, "publishers": 2, "consumers": 2, "every": 0.05, "at_least": 2, "most_kills": 8, "life": 3}


def test_each_effect_happens_once_and_in_order_whatever_is_killed_or_sent_twice(database_url):
    assert prove(database_url, **SHORT)


def test_the_same_over_a_broker_that_is_killed_too(tmp_path):
    with restarting_nats(3.0) as nats_url:
        assert prove(f"sqlite:///{tmp_path / 'bus.db'}", nats_url, **SHORT)
