"""What programs import from `patra` stays, is documented, and is imported only when it is asked for."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import patra

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "python.md"
NAMES = {
    "AttributionEngine",
    "Bus",
    "Client",
    "DurableClient",
    "Event",
    "EventRefused",
    "HandlersFailed",
    "IngestOperation",
    "IngestRun",
    "IngestTrigger",
    "ManualClock",
    "Patra",
    "Poison",
    "RetryLater",
    "Settings",
    "build",
    "ingest_run",
    "load_settings",
    "open_store",
    "read_works",
    "replay",
    "statement",
}
"""A name is added here when it is added there; none leaves before a major version."""


def test_the_public_names_stay() -> None:
    assert set(patra.__all__) == NAMES
    assert set(dir(patra)) >= NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_public_name_leads_to_something_that_can_be_called_and_is_documented(name: str) -> None:
    assert callable(getattr(patra, name))
    assert f"`{name}`" in PAGE.read_text("utf-8")


def test_an_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        patra.nonsense  # noqa: B018


def test_importing_patra_imports_no_engine() -> None:
    code = "import sys, patra; print([name for name in sys.modules if name.startswith('patra.')])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_program_of_the_page_runs(tmp_path: Path) -> None:
    code = PAGE.read_text("utf-8").split("```python\n")[1].split("```")[0]
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "f_batch" in run.stdout or "Refused" in run.stdout


PROGRAMS = [
    *(path for path in (ROOT / "examples").rglob("*") if path.suffix in {".py", ".ipynb"}),
    *(path for path in (ROOT / "docs").rglob("*.md") if "specification" not in path.parts),
    ROOT / "README.md",
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_programs_that_people_copy_import_public_names_only(program: Path) -> None:
    text = program.read_text("utf-8")
    assert re.findall(r"^[ \"]*(?:from|import) (patra\.[\w.]+)", text, re.MULTILINE) == []
    for names in re.findall(r"^[ \"]*from patra import ([\w, ]+)", text, re.MULTILINE):
        assert {name.strip().partition(" as ")[0] for name in names.split(",")} <= NAMES
