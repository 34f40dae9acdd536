"""Every code is given somewhere and reached by a test; the documentation's list is made from the code."""

import re
from pathlib import Path

import pytest

from patra.bus.catalogue.reasons import Reason

ROOT = Path(__file__).parents[4]


def text_of(*folders: str) -> str:
    return "\n".join(
        p.read_text("utf-8")
        for folder in folders
        for p in sorted((ROOT / folder).rglob("*.py"))
        if p.name != "reasons.py" and p != Path(__file__)
    )


SOURCE, TESTS = text_of("src/patra"), text_of("tests/unit/bus", "tests/contract/bus", "tests/property/bus")


@pytest.mark.parametrize("reason", list(Reason))
def test_a_code_is_given_and_reached_by_a_test(reason):
    assert re.search(rf"\bReason\.{reason.name}\b", SOURCE)
    assert f"Reason.{reason.name}" in TESTS or reason.value in TESTS
    assert reason.value.startswith("b_")
