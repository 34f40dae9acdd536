"""The harness of the benchmarks runs, takes turns, and writes down what it measured."""

from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from bench import harness, kernel
from bench.__main__ import benchmarks, main


def test_contenders_take_turns_on_fresh_input_and_the_first_round_does_not_count():
    seen: list[tuple[str, int]] = []
    made = iter(range(100))

    @contextmanager
    def opened():
        yield harness.Running(
            contenders=[
                harness.Contender(name="ours", run=lambda given: seen.append(("ours", given))),
                harness.Contender(name="theirs", run=lambda given: seen.append(("theirs", given))),
            ],
            make=lambda: next(made),
            units=5,
        )

    result = harness.measure(harness.Case(name="case", unit="things/s", open=opened), rounds=3)
    assert [name for name, _ in seen] == ["theirs", "ours", "ours", "theirs", "theirs", "ours", "ours", "theirs"]
    assert [given for _, given in seen] == list(range(8))
    assert [len(figures.rates) for figures in result.figures] == [3, 3]
    assert result.figures[0].of_ours is None
    assert result.figures[1].of_ours is not None


def test_the_kernel_s_cases_run_on_a_small_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(harness, "BUILD", tmp_path)
    assert harness.main("kernel", kernel, ["--quick", "--rounds", "1"]) == 0
    written = msgspec.json.decode((tmp_path / "kernel.json").read_bytes())
    assert len(written["results"]) == 8
    assert {"machine", "python", "sqlite", "fdatasync", "load"} <= set(written["facts"])


def test_benchmarks_are_listed_and_unknown_ones_refused(capsys: pytest.CaptureFixture[str]):
    assert main(["--list"]) == 0
    assert all(name in capsys.readouterr().out for name in ["kernel"])
    assert "harness" not in benchmarks()
    assert main(["nothing"]) == 2
