"""Commands run in this process, in a folder of their own, without the variables of the developer."""

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog

from patra.cli.main import run


class Result:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


Patra = Callable[..., Result]


@pytest.fixture
def patra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Patra]:
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith("PATRA_")]:
        monkeypatch.delenv(variable)

    def patra(*args: str) -> Result:
        code = run(args)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    handlers = list(logging.getLogger().handlers)
    yield patra
    structlog.reset_defaults()
    logging.getLogger().handlers = handlers
