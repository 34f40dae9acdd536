"""Every reason code of ingest is met by a test: one that asserts it, or a case here."""

import ast
import logging
from collections.abc import Iterator

import pytest
import structlog

from patra.ingest.vocabulary.reasons import Reason
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.reason import ReasonCode
from tests.unit.ingest.vocabulary.reason_cases import CASES, NAMED, TESTS, asserting_tests


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


def test_every_code_has_a_case_or_a_test_that_asserts_it() -> None:
    tested = asserting_tests()
    every: list[ReasonCode] = [*Reason, *RunReason]
    assert [code.value for code in every if code not in CASES and code not in NAMED and code.value not in tested] == []


@pytest.mark.parametrize("code", CASES, ids=lambda code: code.value)
def test_the_case_of_a_code_meets_it(code: ReasonCode) -> None:
    assert code.value in CASES[code]()


@pytest.mark.parametrize("where", sorted(set(NAMED.values())))
def test_the_tests_that_are_named_are_there(where: str) -> None:
    file, _, name = where.partition("::")
    tree = ast.parse((TESTS.parent / file).read_text("utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
