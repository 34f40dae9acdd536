"""The short form of `./dev prove attribution_concurrency`: seconds instead of minutes, the same promises."""

from tests.prove.attribution_concurrency import prove


def test_clients_that_send_the_same_events_to_two_processes_have_each_counted_once(postgres_url, tmp_path):
    prove(postgres_url, tmp_path, servers=2, clients=4, events=500)


def test_clients_that_send_the_same_events_to_one_process_on_sqlite_have_each_counted_once(tmp_path):
    prove(f"sqlite:///{tmp_path / 'concurrency.db'}", tmp_path, servers=1, clients=4, events=500)
