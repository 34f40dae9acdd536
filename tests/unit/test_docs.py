"""The pages that people read: links lead somewhere, words are plain, the changelog is one line per change."""

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from docutils import nodes
from docutils.core import publish_doctree

from patra.app.configuration.settings import Settings
from patra.app.wiring import packages
from patra.cli.main import cli
from patra.kernel.db import migrate, open_database
from patra.kernel.db.queries import statement

ROOT = Path(__file__).parents[2]
CHECK: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "check.py"))


DIAGRAMS: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "diagrams.py"))
RULES: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "rules.py"))
NAVIGATION = tomllib.loads((ROOT / "docs" / "navigation.toml").read_text("utf-8"))
ENGINES = ("attribution", "ingest", "bus", "studio")


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_has_a_tutorial_concepts_with_a_current_diagram_tasks_reference_and_operations(
    engine: str,
) -> None:
    index = NAVIGATION["index"]["toctrees"]
    tree = re.findall(r"[\w-]+/[\w-]+", index.partition(f":caption: {engine.capitalize()}\n")[2].partition("```")[0])
    for folder in ("tutorial", "concepts", "how-to", "operations", "reference"):
        assert [entry for entry in tree if entry.startswith(f"{folder}/")], folder
    concepts = (ROOT / "docs" / "concepts" / f"{engine}.md").read_text("utf-8")
    assert f"(../images/flow-{engine}.svg)" in concepts
    drawn = (ROOT / "docs" / "images" / f"flow-{engine}.svg").read_text("utf-8")
    assert drawn == DIAGRAMS["draw"](engine), "run ./dev docs and commit the result"


def test_the_rules_that_the_console_shows_are_those_of_the_specification() -> None:
    shown = RULES["TARGET"].read_text("utf-8")
    assert shown == RULES["text"](), "run ./dev docs and commit the result"
    assert not re.search(r"<(script|style|img|iframe)\b|style=|onclick=", shown)


def test_no_page_shows_the_source_of_a_diagram_or_a_role_of_sphinx() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text("utf-8")
        assert "```mermaid" not in text, page
        assert "stateDiagram" not in text, page
        assert "{doc}`" not in text, page
        assert not re.search(r"^(```|:::)\{\w+\}|^\([\w-]+\)=$", text, re.MULTILINE), page


@pytest.mark.parametrize("folder", ["explanation", "decisions"])
def test_an_index_links_every_page_of_its_folder(folder: str) -> None:
    pages = {page.name for page in (ROOT / "docs" / folder).glob("*.md")} - {"index.md"}
    index = (ROOT / "docs" / folder / "index.md").read_text("utf-8")
    assert set(re.findall(r"^- .*\]\(([\w-]+\.md)\)", index, re.MULTILINE)) == pages


def test_every_picture_that_is_taken_in_dark_too_is_shown_on_a_page_in_both_modes() -> None:
    conf = runpy.run_path(str(ROOT / "docs" / "conf.py"))
    pages = {page: page.read_text("utf-8") for page in (ROOT / "docs").glob("[a-z]*/*.md")}
    dark = {path.stem.removesuffix("-dark") for path in (ROOT / "docs" / "images").glob("console-*-dark.webp")}
    used = {name: page for page, text in pages.items() for name in re.findall(r"/(console-[\w-]+)\.webp", text)}
    assert dark
    assert dark <= used.keys()
    for page, text in pages.items():
        shown = conf["in_both_modes"](page, text)
        for name in dark & set(re.findall(r"/(console-[\w-]+)\.webp\)$", text, re.MULTILINE)):
            assert f"/{name}-dark.webp)" in shown


def test_a_short_name_in_a_table_is_not_broken_in_the_middle() -> None:
    conf = runpy.run_path(str(ROOT / "docs" / "conf.py"))
    long = '{"term":"cancer","from":"2026-01-01"}'
    line = f"{'=' * 50} ="
    page = publish_doctree("\n".join(["``outside``", "", line, "``/loops/wake``", f"``{long}``", line]))
    conf["keep_short_codes_whole"](None, page, "page")
    whole = [code.astext() for code in page.findall(nodes.literal) if "whole" in code["classes"]]
    assert whole == ["/loops/wake"]
    assert "code.whole { white-space: nowrap; }" in (ROOT / "docs" / "static" / "landing.css").read_text("utf-8")


def test_no_page_has_a_broken_link_or_a_word_of_our_own_dialect() -> None:
    assert CHECK["findings"]() == []


def test_every_test_that_a_page_names_is_there() -> None:
    named = {
        (page.name, path)
        for page in (ROOT / "docs").rglob("*.md")
        for path in re.findall(r"`((?:tests/)?[\w/]*test_\w+\.py)`", page.read_text("utf-8"))
    }
    assert len(named) > 10
    assert [(page, path) for page, path in sorted(named) if not (ROOT / path).exists()] == []


def test_a_broken_link_and_a_missing_heading_are_found() -> None:
    page = ROOT / "README.md"
    broken = "see [a](docs/nowhere.md), [b](docs/index.md#nothing) and [c](docs/index.md#patra)"
    assert list(CHECK["broken_links"](page, broken)) == [
        "README.md:1: there is no docs/nowhere.md",
        "README.md:1: docs/index.md has no #nothing",
    ]
    assert list(CHECK["dialect"](page, "a lesser way")) == ["README.md:1: 'lesser way': write 'fallback'"]
    program = 'def show():\n    """What a\n    caller is\n    told."""\n    say("one\\ntwo anew", "anew")  # in bites\n'
    assert list(CHECK["program_texts"]("src/patra/kernel/x.py", program)) == [
        "src/patra/kernel/x.py:4: 'told': write 'shown, reported, sent or given'",
        "src/patra/kernel/x.py:6: 'anew': write 'again'",
        "src/patra/kernel/x.py:5: 'bites': write 'batch, batches'",
    ]
    assert list(CHECK["phrases"]("src/patra/bus/x.py", "a dead letter, told apart,\nworked\n   off")) == [
        "src/patra/bus/x.py:2: 'worked off': write 'handle'"
    ]
    table = "| a | b |\n|---|---|\n| `x\\|y` | z |\n| only |\n\n| another |"
    assert list(CHECK["uneven_tables"](page, table)) == ["README.md:4: the table has 2 columns, this row 1"]
    named = "`contract/bus/test_faults`, `src/patra/web/api/NAME.py`,\n`tests/unit/test_gone.py` and `unit/test_docs`"
    assert list(CHECK["missing_files"](page, named)) == ["README.md:2: there is no tests/unit/test_gone.py"]
    assert list(CHECK["references_elsewhere"]("src/patra/x.py", "as it must be\n(FACTS 12)")) == [
        "src/patra/x.py:2: 'FACTS 12' is in no document of this repository: say it here, or leave it out"
    ]
    cited = list(CHECK["dialect"](page, "as ch. 5.2 says, see [§3.8](docs/index.md)"))
    assert cited == ["README.md:1: 'ch. 5.2' cites the specification: link it, or leave it out"]


def test_the_changelog_has_one_line_per_change_and_each_section_once() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    for release in text.split("\n## ")[1:]:
        titles = [line for line in release.splitlines() if line.startswith("### ")]
        assert len(titles) == len(set(titles))
        changes = [line for line in release.splitlines()[1:] if line and not line.startswith(("### ", "One line"))]
        assert [line for line in changes if not line.startswith("- ") or len(line) > 200] == []


def test_no_module_is_explained_by_a_formula() -> None:
    formula = re.compile(r'^""".* (?:goes|go) in[;,] .* comes? out')
    found = [path for path in (ROOT / "src").rglob("*.py") if formula.match(path.read_text("utf-8"))]
    assert found == []


def test_no_line_of_the_changelog_stands_twice_in_a_release() -> None:
    for release in (ROOT / "CHANGELOG.md").read_text("utf-8").split("\n## "):
        lines = [line for line in release.splitlines() if line.startswith("- ")]
        assert len(lines) == len(set(lines))


def test_every_module_over_a_hundred_lines_was_asked_whether_a_library_does_it() -> None:
    page = (ROOT / "docs" / "decisions" / "0075-other-mechanisms-and-their-libraries.md").read_text("utf-8")
    named = set(re.findall(r"`([a-z_0-9/]+)`", page))
    source = ROOT / "src" / "patra"
    large = [
        path.relative_to(source).with_suffix("").as_posix()
        for path in source.rglob("*.py")
        if len(path.read_text("utf-8").splitlines()) > 100
    ]
    assert [module for module in large if not any(f"{module}/".startswith(f"{name}/") for name in named)] == []


def test_every_mechanism_of_that_page_is_there() -> None:
    page = (ROOT / "docs" / "decisions" / "0075-other-mechanisms-and-their-libraries.md").read_text("utf-8")
    first = [line.split("|")[1].partition(":")[0] for line in page.splitlines() if line.startswith("| `")]
    source = ROOT / "src" / "patra"
    names = [name for cell in first for name in re.findall(r"`([a-z_0-9/]+)`", cell)]
    assert names
    assert [name for name in names if not (source / name).is_dir() and not (source / f"{name}.py").exists()] == []


def _policies() -> dict[str, str]:
    """Every table of the page on retention, with its policy."""
    page = (ROOT / "docs" / "operations" / "retention.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\| ([^|]*) \|[^|]*\|[^|]*\|$", page, re.MULTILINE)
    assert len(rows) == len({name for name, _ in rows}), "a table stands twice"
    return dict(rows)


def test_every_table_of_every_migration_has_a_policy_of_retention() -> None:
    db = open_database("sqlite:///:memory:")
    migrate(db, packages())
    listed = statement("tables", "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    tables = {name for (name,) in db.read(lambda tx: tx.fetch(listed))}
    db.close()
    own = (path.read_text("utf-8") for path in (ROOT / "src").rglob("*.postgres.sql"))
    tables |= {name for text in own for name in re.findall(r"^CREATE TABLE (\w+)", text, re.MULTILINE)}
    assert len(tables) > 90
    assert _policies().keys() == tables


def test_what_leaves_for_files_says_by_which_commands_it_is_asked_and_brought_back() -> None:
    page = (ROOT / "docs" / "operations" / "retention.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|([^|]*)\|([^|]*)\|$", page, re.MULTILINE)
    filed = {name for name, _, goes, _ in rows if "history_folder" in goes}
    assert {"att_log", "att_decision", "att_billable", "ing_task_run", "ing_cursor_event"} <= filed
    assert [name for name, _, _, back in rows if name in filed and "`patra " not in back] == []
    assert [name for name, policy, goes, _ in rows if policy.strip().startswith("period") and not goes.strip()] == []
    for command in {one for *_, back in rows for one in re.findall(r"`patra ([a-z -]+)`", back)}:
        found: click.Command | None = cli
        for word in command.split():
            assert isinstance(found, click.Group), command
            found = found.get_command(click.Context(found), word)
        assert found is not None, command


def test_a_policy_of_retention_is_of_a_known_kind_and_names_settings_that_exist() -> None:
    kinds = re.compile(r"(state|transient|period: .+|kept: .+)$")
    assert [name for name, policy in _policies().items() if not kinds.match(policy)] == []
    page = (ROOT / "docs" / "operations" / "retention.md").read_text("utf-8")
    named = set(re.findall(r"`((?:attribution|bus|ingest|studio|store|web)\.[a-z_]+)`", page))
    known = {f"{section}.{name}" for section, some in msgspec.to_builtins(Settings()).items() for name in some}
    loops = {"attribution.retention", "attribution.partitions", "ingest.retention", "bus.upkeep"}
    assert len(named) > 8
    assert named - known - loops == set()
