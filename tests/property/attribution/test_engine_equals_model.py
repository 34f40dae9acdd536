"""Random logs through the engine and through the second reading: ACKs, facts, audits, records and closures are equal."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patra.attribution.replay import replay
from patra.kernel.db import migrate, open_database
from tests.model.attribution import run
from tests.property.attribution.compare import differences
from tests.property.attribution.logs import logs, seeded_log
from tests.support.examples import examples

PACKAGES = ["patra.kernel", "patra.attribution"]


def replayed(lines, **options):
    db = open_database("sqlite:///:memory:")
    try:
        migrate(db, PACKAGES)
        return replay(lines, db, **options)
    finally:
        db.close()


@settings(max_examples=examples(50))
@given(logs())
def test_the_engine_on_sqlite_equals_the_model(lines):
    assert differences(replayed(lines), run(lines)) == []


@settings(max_examples=examples(25))
@given(logs(), st.data())
def test_the_grouping_of_batches_into_commits_changes_nothing(lines, data):
    group = data.draw(st.lists(st.integers(1, 6), max_size=len(lines)))
    assert differences(replayed(lines, group=group), run(lines)) == []


@pytest.mark.parametrize("seed", range(4))
def test_a_longer_log_on_each_database_equals_the_model(database, seed):
    migrate(database, PACKAGES)
    lines = seeded_log(seed, lines=60, events=12)
    assert differences(replay(lines, database, group=(None, [7] * 9)[seed % 2]), run(lines)) == []
