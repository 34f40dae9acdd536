"""What `backup`, `restore` and `verify` say to a person: a few lines, and what they come to."""

from pathlib import Path

from tests.unit.cli.conftest import Patra


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
