"""The short forms of `ingest_harvest` and `ingest_kills`: the same checks on fewer records, ways and processes."""

from tests.prove import ingest_harvest, ingest_kills, ingest_rate
from tests.prove.ingest_harvest import Way

WAYS = [
    Way("PAGE", xml=False, two_phase=True),
    Way("TOKEN", xml=True, two_phase=False),
    Way("LINK", xml=False, two_phase=False),
    Way("TIME", xml=True, two_phase=False),
]


def test_hostile_providers_are_harvested_exactly_and_never_asked_too_often(tmp_path) -> None:
    ingest_harvest.prove(f"sqlite:///{tmp_path / 'patra.db'}", WAYS, records=100)


def test_processes_with_one_gate_in_redis_harvest_exactly_and_never_ask_too_often(
    postgres_url: str, redis_url: str
) -> None:
    ingest_harvest.prove(postgres_url, WAYS[:2], records=60, redis=redis_url, processes=2)


def test_processes_without_redis_harvest_exactly_and_never_ask_too_often(postgres_url: str) -> None:
    ingest_harvest.prove(postgres_url, WAYS[:2], records=60, processes=2)


def test_operations_that_run_at_once_keep_to_their_own_cursors(postgres_url: str, redis_url: str) -> None:
    ingest_harvest.at_once(postgres_url, records=200, redis=redis_url, processes=2)


def test_killed_executors_lose_nothing_and_cost_a_batch_each(database_url: str, redis_url: str) -> None:
    sqlite = database_url.startswith("sqlite")
    redis, processes = ("", 1) if sqlite else (redis_url, 2)
    ingest_kills.prove(database_url, redis=redis, processes=processes, records=120, kills=2, at_least=2, life=3, ttl=2)


def test_processes_with_one_gate_in_postgres_never_use_more_than_its_limit_in_any_second(postgres_url: str) -> None:
    ingest_rate.prove(postgres_url, uses=150, processes=2, every=0.1, at_least=1, most_kills=1, life=20)
