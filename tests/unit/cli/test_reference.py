"""The reference pages hold everything that the code declares, and every error code is documented."""

import ast
import re
from pathlib import Path

import msgspec
import pytest

from patra.app.configuration.settings import every_setting
from patra.attribution.decision.ack import AckItem, BatchAck
from patra.cli.citations import targets
from patra.cli.main import COMMANDS
from patra.cli.reference import PAGES, current, drawings_of_machines, import_everything
from patra.kernel import errors
from patra.kernel.errors import PatraError
from patra.kernel.machine import declared_machines
from patra.kernel.reason import ReasonCode
from patra.kernel.telemetry import METRICS

ROOT = Path(__file__).parents[3]
SOURCES = sorted((ROOT / "src" / "patra").rglob("*.py"))
ERRORS = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, PatraError)}
ERRORS |= {"Poison", "WebhookFailed", "_LostBeforeCommit"}


def given(source: Path) -> set[str]:
    """The codes that a file gives as they stand there: the first argument of an error, the second of a problem."""
    found: set[str] = set()
    for call in ast.walk(ast.parse(source.read_text("utf-8"))):
        match call:
            case ast.Call(func=ast.Name(id="Problem"), args=[_, ast.Constant(value=str(code)), *_]):
                found.add(code)
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(code)), *_]) if name in ERRORS:
                found.add(code)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_page_that_the_code_can_make_is_in_the_documentation(page: str) -> None:
    pages = [path.read_text("utf-8") for path in (ROOT / "docs" / "reference").glob("*.md")]
    assert sum(f"<!-- generated: {page}; " in text for text in pages) == 1


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "reference").glob("*.md")), ids=lambda path: path.name)
def test_the_committed_page_is_what_the_code_declares(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text == current(text, targets(ROOT / "docs" / "specification")), "run ./dev docs and commit the result"


def test_every_state_machine_is_drawn_as_its_table_is_today() -> None:
    folder = ROOT / "docs" / "reference" / "machines"
    assert {path.name: path.read_text("utf-8") for path in folder.glob("*.svg")} == drawings_of_machines()


def test_every_field_of_the_envelope_and_every_column_of_works_is_explained() -> None:
    for page in ("envelope", "works"):
        rows = [line for line in PAGES[page]().splitlines() if line.startswith("| `")]
        assert len(rows) > 10
        assert [row for row in rows if row.endswith("|  |")] == []


def test_the_settings_page_has_every_setting_with_its_description_and_variable() -> None:
    page = PAGES["settings"]()
    for setting in every_setting():
        assert f"### {setting.key}\n\n{setting.description}\n" in page
        assert f"`{setting.variable}`" in page


def test_the_command_page_has_every_command() -> None:
    page = PAGES["commands"]()
    for name in COMMANDS:
        assert f"## patra {name}\n" in page
    assert "### patra config show\n" in page
    assert "patra up --port 9000" in page


def test_the_endpoint_metric_and_machine_pages_have_what_is_declared() -> None:
    assert "| POST | `/loops/{name}/wake` | operator | Let a loop take its next turn now. |" in PAGES["endpoints"]()
    import_everything()
    metrics, machines = PAGES["metrics"](), PAGES["machines"]()
    assert [
        metric.name for metric in METRICS if f"`{metric.name}`" not in metrics and "_test_" not in metric.name
    ] == []
    ours = [machine.name for machine in declared_machines() if type(machine.initial).__module__.startswith("patra.")]
    assert [name for name in ours if f"## {name}\n" not in machines] == []


def test_the_answer_to_a_batch_is_described_with_all_its_fields() -> None:
    page = (ROOT / "docs/reference/attribution-events.md").read_text("utf-8")
    names = [field.name for struct in (BatchAck, AckItem) for field in msgspec.structs.fields(struct)]
    assert [name for name in names if f"`{name}`" not in page and f".{name}`" not in page] == []


def test_no_endpoint_is_described_by_the_docstring_of_its_module() -> None:
    assert "| file |" not in PAGES["endpoints"]().replace("\\|", "|")


def test_every_error_code_is_documented() -> None:
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs/reference").glob("*.md"))
    codes = {code for path in SOURCES for code in given(path)}
    assert len(codes) > 80
    import_everything()
    explained = {reason.value for kind in ReasonCode.__subclasses__() for reason in kind}
    assert {code for code in codes - explained if f"| `{code}` |" not in pages} == set()


def test_the_page_of_errors_has_none_that_is_never_given() -> None:
    documented = set(
        re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/reference/errors.md").read_text("utf-8"), re.MULTILINE)
    )
    words = {word for path in SOURCES for word in re.findall(r'"(\w+)"', path.read_text("utf-8"))}
    assert documented - words == set()
