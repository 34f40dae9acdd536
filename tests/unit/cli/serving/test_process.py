"""How a server begins: a person is greeted in a few lines, a log collector gets every event."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import click
import pytest

from patra.app.configuration.settings import LogSettings, Settings, StoreSettings
from patra.app.loops import LoopRole
from patra.cli.serving import work
from patra.cli.serving.process import Stop, greeting, run, starts_quietly, stop_on_signals
from patra.kernel.errors import ConfigInvalid


@pytest.mark.parametrize(
    ("log", "terminal", "quiet"),
    [
        (LogSettings(), True, True),
        (LogSettings(), False, False),
        (LogSettings(format="json"), True, False),
        (LogSettings(level="debug"), True, False),
    ],
)
def test_only_a_person_at_a_terminal_gets_a_quiet_start(log: LogSettings, terminal: bool, quiet: bool) -> None:
    assert starts_quietly(Settings(log=log), terminal=terminal) is quiet


def test_the_greeting_says_where_it_is_and_who_may_use_it() -> None:
    text = greeting("http://127.0.0.1:8642", "/home/me/patra.db", "every program on this machine, as admin")
    assert len(text.splitlines()) == 5
    for part in ("http://127.0.0.1:8642/console", "/home/me/patra.db", "every program on this machine, as admin"):
        assert part in text


def test_a_process_that_is_refused_says_the_refusal_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    settings = Settings(store=StoreSettings(url=f"sqlite:///{tmp_path / 'patra.db'}"))
    with pytest.raises(ConfigInvalid, match=r"there is no loop 'bus\.nosuch'"):
        run(settings, web=False, loops=["bus.nosuch"])
    said = "".join(capfd.readouterr())
    assert "stopping" not in said
    assert "closed" not in said


def test_what_is_frozen_is_released_at_the_exit_so_that_duckdb_reports_no_leak() -> None:
    script = "import duckdb\nfrom patra.cli.serving.process import settle_interpreter\nduckdb.connect()\nsettle_interpreter()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_hangup_that_comes_before_the_tokens_can_be_read_again_is_not_lost() -> None:
    reloaded = threading.Event()
    with stop_on_signals() as stop:
        signal.raise_signal(signal.SIGHUP)
        assert not reloaded.is_set()
        stop.reload_with(reloaded.set)
        assert reloaded.is_set()


def test_without_a_hangup_nothing_is_read_again_and_each_one_asks_once() -> None:
    reloads = threading.Semaphore(0)
    stop = Stop()
    stop.reload_with(reloads.release)
    assert not reloads.acquire(blocking=False)
    stop.ask_reload()
    assert reloads.acquire(timeout=20)
    assert not reloads.acquire(blocking=False)


def test_the_roles_that_may_be_asked_for_are_those_of_the_loops() -> None:
    option = next(one for one in work.command.params if one.name == "roles")
    assert isinstance(option.type, click.Choice)
    assert list(option.type.choices) == list(LoopRole)
