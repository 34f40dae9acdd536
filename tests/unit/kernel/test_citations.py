"""Pages for users do not cite the specification."""

import pytest

from patra.kernel.citations import without_citations


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Only the orchestrator creates jobs (C§2.4, C§5).", "Only the orchestrator creates jobs."),
        ("Key of the record (§3.8.29).", "Key of the record."),
        ("Nothing may ask for more (ch. 3.3.3, 4.17 no. 6).", "Nothing may ask for more."),
        ("The planner cut the chapter into shots (C§2.3, B3).", "The planner cut the chapter into shots."),
        ("A source was halted (ingest ch. 12, I6).", "A source was halted."),
        ("Two (2) of them, in brackets (B, C).", "Two (2) of them, in brackets (B, C)."),
    ],
)
def test_citations_in_brackets_are_left_out(text: str, plain: str) -> None:
    assert without_citations(text) == plain
