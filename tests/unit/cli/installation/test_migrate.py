"""What `patra migrate` says to a person: a line for each package."""

import sys

import msgspec
import pytest

from tests.unit.cli.conftest import Patra


def test_a_new_store_is_a_line_for_each_package(patra: Patra, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as terminal:
        terminal.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        *table, last = patra("migrate").out.splitlines()
        assert patra("migrate").out == "the store is up to date\n"
    packages = [line.split()[0] for line in table[2:]]
    assert len(packages) == len(set(packages)), "no migration has a line of its own"
    assert {"patra.kernel", "patra.bus"} < set(packages)
    assert last == "the store is up to date"

    (act,) = msgspec.json.decode(patra("audit", "--json").out)
    assert act["detail"]["applied"] > len(act["detail"]["newest"]) == len(packages), "a row of the audit is short"
