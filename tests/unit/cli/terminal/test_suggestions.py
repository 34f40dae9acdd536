"""A slip is answered with the word that was meant, and with nothing where none is near."""

import pytest

from patra.cli.terminal.suggestions import nearest
from tests.unit.cli.conftest import Patra


@pytest.mark.parametrize(
    ("word", "names", "near"),
    [
        ("retirin", ["shadow", "dual", "retiring"], ["retiring"]),
        ("shwo", ["show"], ["show"]),  # two letters that changed places are one slip
        ("dead_leters", ["dead-letters"], ["dead-letters"]),
        ("--prot", ["--host", "--port"], ["--port"]),
        ("--po", ["--host", "--port"], ["--port"]),
        ("tuor", ["story", "up"], []),
        ("--last", ["--to", "--from", "--out"], []),
        ("x", ["y"], []),
        ("pubmd", ["pubmed", "pmc"], ["pubmed"]),
    ],
)
def test_a_slip_is_near_and_another_word_is_not(word: str, names: list[str], near: list[str]) -> None:
    assert nearest(word, names) == near


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("help", "There is no command 'help'. Did you mean `patra --help`?"),
        ("bus help", "There is no command 'help'. Did you mean `patra bus --help`?"),
        ("serve", "Did you mean `patra up`?"),
        ("rejects", "Did you mean `patra attribution rejects`?"),
        ("reject", "Did you mean `patra attribution rejects`?"),
        ("bus pause", "Did you mean `patra bus groups pause`?"),
        ("bus event", "Did you mean `patra bus timeline`?"),
        ("tuor", "`patra --help` lists them."),
        ("list", "`patra --help` lists them."),  # many have one
        ("bus groups mailer", "`patra bus groups` alone shows all, `patra bus groups --help` lists its commands."),
        ("up --prot 1", "There is no option --prot. Did you mean --port?"),
        ("attribution settle --last 30", "There is no option --last.\n"),
        ("completion zhs", "SHELL cannot be 'zhs'. Did you mean zsh?"),
        ("completion", "SHELL is missing: one of bash, zsh, fish."),
        ("ingest schedule add a/b c --operation BACKFIL", "--operation cannot be 'BACKFIL'. Did you mean BACKFILL?"),
        ("atrr rejects", "Did you mean attribution?"),
        ("--json attribution rejects", "There is no option --json. Options of a command stand behind its name."),
        ("attribution rejects --limit ten", "--limit takes a whole number of 1 or more."),
        ("ingest runs --limit 0", "--limit takes a whole number from 1 to 10000."),
        ("attribution settle --from 2026-01-01 --to 2026-02-01 --where placemnt=home", "Did you mean placement?"),
        ("attribution settle --from 2026-01-01 --to 2026-02-01 --where home", "Write it as placement=home."),
        ("completion tcsh", "SHELL cannot be 'tcsh'. It is one of bash, zsh, fish."),
    ],
)
def test_a_wrong_word_is_answered_with_what_was_probably_meant(patra: Patra, line: str, said: str) -> None:
    result = patra(*line.split())
    assert result.code == 2
    assert said in result.err
    assert result.err.count("There is no") <= 1
