"""What the commands of the installation say to a person: a few lines, and what they come to."""

import sys
from pathlib import Path

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


def test_a_check_of_the_store_says_what_it_comes_to(patra: Patra) -> None:
    patra("migrate")
    assert "nothing is damaged" in patra("verify").err


def test_a_restore_says_where_the_store_is_that_was_there(patra: Patra) -> None:
    patra("migrate")
    patra("backup", "copy.db")
    first, second = patra("restore", "copy.db", "--replace").out.splitlines()
    assert first.startswith("patra.db is restored, as of 2")
    aside = second.removeprefix("the store that was there is now ")
    assert Path(aside).is_file()


def test_a_backup_in_the_wrong_folder_says_what_to_do(patra: Patra) -> None:
    refused = patra("backup", "copy.db")
    assert refused.code == 3
    assert "change to the folder of your store" in refused.err
    assert not list(Path().iterdir())
