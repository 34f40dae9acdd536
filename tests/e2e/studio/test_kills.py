"""The short form of tests/prove/studio_kills.py."""

import random
from pathlib import Path

import pytest

from patra.studio.film.quality import QUALITIES
from tests.prove.studio_kills import TINY, one_run


def test_a_run_whose_processes_are_killed_ends_in_one_film(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(QUALITIES, "draft", TINY)
    one_run(tmp_path, random.Random(7), number=1, most_kills=3)
