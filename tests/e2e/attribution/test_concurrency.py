"""The short form of `./dev prove attribution_concurrency`: seconds instead of minutes, the same promises."""

from tests.prove.attribution_concurrency import prove


def test_clients_that_send_the_same_events_to_two_processes_have_each_counted_once(postgres_url, tmp_path):
    prove(postgres_url, tmp_path, servers=2, clients=4, events=500)


def test_clients_that_send_the_same_events_to_two_processes_on_one_sqlite_file_have_each_counted_once(tmp_path):
    prove(f"sqlite:///{tmp_path / 'concurrency.db'}", tmp_path, servers=2, clients=4, events=300)
