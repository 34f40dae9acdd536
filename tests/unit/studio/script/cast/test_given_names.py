"""The table of given names is what Faker's lists say."""

import pytest

from patra.studio.script.cast.given_names import given_name_votes
from tests.support.given_names import TABLE, table


def test_the_table_is_written_from_faker() -> None:
    assert TABLE.read_text("utf-8") == table(), "python -m tests.support.given_names"


@pytest.mark.parametrize(("name", "sex"), [("Pippa", 1), ("Dmitri", -1), ("Solveig", 1), ("Xqz", 0)])
def test_a_given_name_is_a_womans_or_a_mans(name: str, sex: int) -> None:
    votes = given_name_votes(name)
    assert (votes > 0) - (votes < 0) == sex
