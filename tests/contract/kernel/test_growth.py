"""The benchmark of growth names what grows, and its small form runs on every engine."""

import argparse
from pathlib import Path

import msgspec
import pytest
from bench import growth, growth_attribution, growth_bus, growth_ingest, harness, performance_page
from bench.growth_spot import Spot, cost_of, growth_of, is_flat

SPOTS = {
    "attribution: intake: read and commit",
    "attribution: index by key, runs joined",
    "attribution: find a key",
    "attribution: settle by app",
    "attribution: settle by placement",
    "attribution: closures, open",
    "attribution: refused",
    "ingest: windows done behind a hole",
    "ingest: queue",
    "ingest: tasks that are queued",
    "ingest: where a cursor begins",
    "ingest: alerts: first look at the flows",
    "bus: consume, in order per key",
    "bus: retention",
    "bus: replay, handled",
    "bus: totals of the groups",
}


@pytest.mark.parametrize(
    ("costs", "ratio", "flat"),
    [
        ({0: 1.0, 1_000_000: 10.0, 10_000_000: 11.0}, 1.1, True),
        ({0: 1.0, 1_000_000: 10.0, 10_000_000: 23.3}, 2.33, True),
        ({0: 1.0, 1_000_000: 10.0, 10_000_000: 23.4}, 2.34, False),
        ({1_000_000: 10.0, 10_000_000: 100.0}, 10.0, False),
        ({0: 1.0, 1_000_000: 500.0}, None, None),
        ({}, None, None),
    ],
)
def test_a_cost_is_flat_while_it_grows_no_more_than_twice_the_logarithm(costs, ratio, flat):
    assert growth_of(costs) == (None if ratio is None else pytest.approx(ratio))
    assert is_flat(costs) is flat


def test_a_round_that_had_nothing_to_do_does_not_count():
    done = iter([0, 4, 0])
    begun: list[int] = []
    cost = cost_of(Spot("a", "event", lambda: next(done), lambda: begun.append(1)), 3)
    assert cost is not None
    assert len(begun) == 3
    assert cost_of(Spot("b", "event", lambda: 0), 3) is None


@pytest.mark.parametrize("text", ["a", "", "1,x", "-1,5"])
def test_sizes_are_numbers(text):
    with pytest.raises(argparse.ArgumentTypeError):
        growth.sizes_of(text)
    assert growth.sizes_of("200,0,20") == [0, 20, 200]


def test_every_spot_is_measured_on_a_small_store_and_shown_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(harness, "BUILD", tmp_path)
    monkeypatch.setattr(growth_attribution, "GROUP_BATCHES", 1)
    monkeypatch.setattr(growth_ingest, "RECENT_BATCHES", 50)
    monkeypatch.setattr(growth_bus, "STEP_EVENTS", 50)
    assert growth.main(["--sizes", "200", "--rounds", "1", "--only", "sqlite"]) == 0
    assert "attribution: find a key" in capsys.readouterr().out
    written = msgspec.json.decode((tmp_path / "growth.json").read_bytes())
    rows = written["growth"]["SQLite"]
    assert rows.keys() >= SPOTS
    assert all(row["costs"]["200"] > 0 for row in rows.values())
    page = performance_page.render({"growth": written})
    assert "## Cost of one unit on small and large stores" in page
    assert "| bus: retention | body | " in page


def test_the_page_says_which_spots_grow():
    rows = {
        "bus: a": {"unit": "event", "costs": {"1000000": 5.0, "10000000": 6.0}},
        "bus: b": {"unit": "body", "costs": {"0": 1.0, "1000000": 5.0, "10000000": 60.0}},
    }
    facts = dict.fromkeys(("commit", "machine", "python", "sqlite", "fdatasync", "load"), "x")
    page = performance_page.render({"growth": {"facts": facts, "growth": {"PostgreSQL": rows}}})
    assert "PostgreSQL: 1 of 2 stay flat" in page
    assert "| bus: a | event |  | 5.0 | 6.0 | 1.20 | yes |" in page
    assert "| bus: b | body | 1.0 | 5.0 | 60.0 | 12.00 | no |" in page
