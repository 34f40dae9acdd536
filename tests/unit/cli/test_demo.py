"""The demonstration says on the console's first page what it is doing, from the first moment on."""

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from urllib3 import PoolManager

from patra.cli.demo import _Guide
from patra.demo import STEPS, Demo, Link, Step
from patra.kernel.telemetry import setup_logging
from tests.unit.web.served import Client, served


def first_page(client: Client) -> str:
    return PoolManager().request("GET", client.url + "/console/").data.decode()


def test_the_first_page_says_what_is_filled_and_then_where_to_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    setup_logging(level="error")
    with served() as client, ExitStack() as at_end:
        assert 'id="notice"' not in first_page(client)
        guide = _Guide(tmp_path, at_end, once=True, seconds=None)
        guide.watch(client.patra)
        told = first_page(client)
        assert "This is a demonstration on a temporary store. It is being filled: " in told
        assert all(step.name.partition(":")[0] in told for step in STEPS)
        demo = Demo(url=client.url, folder=tmp_path)
        demo.walk.append(Link(path="/console/studio?x=<b>", text="films & more"))
        guide._walk(PoolManager(), demo)
        told = first_page(client)
        assert '<a href="/console/studio?x=&lt;b&gt;">films &amp; more</a>' in told
        assert "It is being filled" not in told
    assert "films & more" in capsys.readouterr().out


def test_on_a_terminal_what_a_step_says_breaks_between_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    setup_logging(level="error")
    monkeypatch.setattr("patra.demo.STEPS", (Step(name="One", show=lambda _: ["several words " * 20]),))
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    with served() as client, ExitStack() as at_end:
        _Guide(tmp_path, at_end, once=True, seconds=None)._show(client.url)
    lines = [line for line in capsys.readouterr().out.splitlines() if "several" in line]
    assert len(lines) > 4
    assert all(line.startswith("  ") and len(line) <= 60 for line in lines)
