"""What others sent is shown to an operator without steering the terminal."""

import stat
from contextlib import suppress
from pathlib import Path

import click
import pytest

from patra.cli.ingest.replay import _write
from patra.cli.main import run
from patra.cli.terminal.options import AtLeast, escaped_echo, show, without_controls
from patra.cli.terminal.tables import Styled


def test_control_characters_are_written_out() -> None:
    assert without_controls("a\x1b[31mb\x07\x9b2Jc\u202ed\n") == "a\\x1b[31mb\\x07\\x9b2Jc\\u202ed\\x0a"
    assert without_controls("plain Ünïcode 文字 ✓") == "plain Ünïcode 文字 ✓"


@pytest.mark.parametrize("as_json", [True, False])
def test_no_command_prints_an_escape_sequence_of_an_sdk(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    show([{"sdkVersion": "1\x1b]0;owned\x07\x9b2J", "more": {"x": "\x1b[2J\x9b"}}], as_json=as_json)
    out = capsys.readouterr().out
    assert "owned" in out
    assert not {"\x1b", "\x07", "\x9b"} & set(out)


def test_evidence_is_its_owners_alone_also_where_the_file_was_there(tmp_path: Path) -> None:
    (tmp_path / "evidence.json").write_bytes(b"older and longer")
    (tmp_path / "evidence.json").chmod(0o644)
    _write(tmp_path, {"a": 1}, b"body", "json")
    for name in ("evidence.json", "body.json"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert b"older" not in (tmp_path / "evidence.json").read_bytes()


def test_no_command_prints_an_escape_sequence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATRA_STORE_URL", f"sqlite:///{tmp_path / 'patra.db'}")
    run(["migrate"])
    with suppress(SystemExit):
        run(["story", "evil\x1b]0;owned\x07\x9b31m\u202e"])
    out, err = capfd.readouterr()
    assert "\\u001b]0;owned\\u0007\\u009b31m\\u202e" in out + err
    assert not set("\x1b\x07\x9b\u202e") & set(out + err)


def test_our_own_styles_stay(capfd: pytest.CaptureFixture[str]) -> None:
    with escaped_echo():
        click.echo(Styled("\x1b[1mbold\x1b[0m"), color=True)
        click.echo("a\tb\nc\x1b[1m", color=True)
        click.echo(b"\x1b")
    assert capfd.readouterr().out == "\x1b[1mbold\x1b[0m\na\tb\nc\\u001b[1m\n\x1b\n"


def test_a_number_without_a_limit_of_its_own_shows_none_and_refuses_what_no_store_takes() -> None:
    @click.command()
    @click.option("--limit", type=AtLeast(1), default=100, show_default=True)
    def command(limit: int) -> None:
        del limit

    assert "[default: 100; x>=1]" in command.get_help(click.Context(command))
    for wrong in ("0", str(2**63)):
        with pytest.raises(click.BadParameter):
            command.main(["--limit", wrong], standalone_mode=False)


def test_no_help_shows_the_largest_number_of_a_store(capfd: pytest.CaptureFixture[str]) -> None:
    for line in (["attribution", "rejects"], ["attribution", "list"], ["attribution", "find"], ["ingest", "show"]):
        run([*line, "--help"])
    out = capfd.readouterr().out
    assert "x>=1" in out
    assert str(2**62) not in out
    assert str(2**31) not in out
