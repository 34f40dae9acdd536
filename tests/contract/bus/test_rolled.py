"""The short form of `./dev prove bus_rolling_upgrade`: a few processes and events, receivers of both versions on a stream."""

from tests.prove.bus_exactly_once import restarting_nats
from tests.prove.bus_rolling_upgrade import prove


def test_no_event_misses_a_group_while_processes_of_two_versions_share_a_store_and_a_stream(tmp_path):
    with restarting_nats(30.0) as nats_url:
        url = f"sqlite:///{tmp_path / 'bus.db'}"
        assert prove(
            url, nats_url, events_=120, publishers=1, consumers=1, every=0.05, at_least=1, most_kills=2, life=2
        )
