"""The page of figures is what the kept results render to: no figure on it was written by hand."""

import copy
from pathlib import Path

import msgspec
import pytest
from bench import harness, performance_page
from bench.__main__ import main

from tests.prove.__main__ import run

FACTS = {
    "date": "2026-11-18 09:00 UTC",
    "commit": "abc",
    "machine": "a machine",
    "python": "3.11",
    "sqlite": "3.40",
    "fdatasync": "1 ms",
    "load": "1 1 1",
}


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results and page of a test of its own."""
    for place in (harness, performance_page):
        monkeypatch.setattr(place, "BUILD", tmp_path / "build")
    monkeypatch.setattr(performance_page, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(performance_page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(performance_page, "ROOT", tmp_path)
    monkeypatch.setattr(performance_page.documents, "__defaults__", (tmp_path / "results",))
    return tmp_path


def test_the_committed_page_is_what_the_committed_results_render_to() -> None:
    advice = "run `./dev bench --page` and commit docs/explanation/performance.md"
    assert performance_page.PAGE.read_text("utf-8") == performance_page.render(performance_page.documents()), advice


def test_every_committed_result_says_when_where_and_of_which_commit_it_is_and_is_on_the_page() -> None:
    found = performance_page.documents()
    assert sorted(file.stem for file in performance_page.RESULTS.iterdir()) == sorted(found)
    page = performance_page.PAGE.read_text("utf-8")
    for name, document in found.items():
        known = document["proofs"].values() if name == "proofs" else [document["facts"]]
        assert all(one[fact] in page for one in known for fact in ("date", "commit"))


def test_another_figure_makes_another_page() -> None:
    found = performance_page.documents()
    changed = copy.deepcopy(found)
    changed["bus"]["results"][0]["figures"][0]["median"] += 1000
    assert performance_page.render(changed) != performance_page.render(found)


def test_a_bound_that_is_missed_is_shown_as_missed() -> None:
    figure = "postgres: batch at 10,000 offered, 10 M keys"
    page = {}
    for value in (49.0, 51.0):
        document = {"facts": FACTS, "figures": {figure: value}}
        page[value] = performance_page.render({"attribution": document})
    assert "| at most 50 ms | 49.0 ms | 0.98 | yes |" in page[49.0]
    assert "| at most 50 ms | 51.0 ms | 1.02 | no |" in page[51.0]


def test_a_quick_run_is_marked() -> None:
    rows = {"a": [1.0, 250.0, 260.0, 1.0, 3], "b": [1.0, 2.0, 3.0, 1.0, 3]}
    page = performance_page.render({"reads": {"facts": FACTS, "quick": True, "reads": {"SQLite": rows}}})
    assert "A quick run" in page
    assert "1 of 2 reads" in page


def test_a_story_has_half_the_time_of_another_read_and_the_processor_is_counted_beside_the_clock() -> None:
    rows = {
        "tasks": [100.0, 150.0, 160.0, 20.0, 3],
        "story: plan": [100.0, 150.0, 160.0, 60.0, 3],
        "a batch of 100 events written, nobody reads": [5.0, 6.0, 7.5, 0.0, 3],
    }
    page = performance_page.render({"reads": {"facts": FACTS, "quick": True, "reads": {"SQLite": rows}}})
    assert "1 of 2 reads have a 95th percentile within 200 ms (100 ms for stories), and 1 take less than half" in page
    assert page.index("| story: plan |") < page.index("| tasks | 100.0 | 150.0 | 160.0 | 20.0 | 0.75 |")
    assert "| a batch of 100 events written, nobody reads | 5.0 | 6.0 | 7.5 |" in page


def test_a_result_of_an_unknown_form_is_refused() -> None:
    with pytest.raises(ValueError, match="bus: no form"):
        performance_page.render({"bus": {"facts": FACTS, "results": []}})


def test_results_of_the_last_runs_are_kept_and_the_page_rendered(
    folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--page"]) == 1
    assert "run `./dev bench NAME --page` first" in capsys.readouterr().err
    harness.report("kernel", FACTS, iter([]))
    harness.write("attribution", {"facts": FACTS, "figures": {"sqlite: memory": 5.0}})
    harness.write("scratch", {"facts": FACTS})
    (folders / "build" / "kernel.json").unlink()
    assert main(["--page"]) == 0
    assert [file.name for file in (folders / "results").iterdir()] == ["attribution.json"]
    assert "| memory | 5.00 |" in (folders / "page.md").read_text("utf-8")


def test_a_proof_writes_its_result_down_whether_it_holds_or_not(
    folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> str:
        raise AssertionError("lost")

    assert run("good", "a proof", lambda: "3 kills")
    assert not run("bad", "a proof", broken)
    capsys.readouterr()
    kept = msgspec.json.decode((folders / "build" / "proofs.json").read_bytes())["proofs"]
    assert {name: (one["result"], one["figures"]) for name, one in kept.items()} == {
        "good": ("holds", "3 kills"),
        "bad": ("does not hold", ""),
    }
    assert main(["--page"]) == 0
    assert "| `./dev prove good` | holds | 3 kills |" in (folders / "page.md").read_text("utf-8")
