"""The reference pages hold everything that the code declares, and every error code of the shell is documented."""

import re
from pathlib import Path

import pytest

from patra.app.settings import every_setting
from patra.cli.main import COMMANDS
from patra.cli.reference import PAGES, import_everything
from patra.kernel.machine import declared
from patra.kernel.telemetry import METRICS

ROOT = Path(__file__).parents[3]
SHELL = [
    path
    for package in ("kernel", "app", "web", "cli")
    for path in (ROOT / "src" / "patra" / package).rglob("*.py")
    if path.stem not in {"attribution", "ingest", "bus", "studio", "testing"}
]
GIVEN = re.compile(
    r'(?:Problem\(\s*\d+,|(?:ConfigInvalid|StoreUnavailable|StoreBusy|_LostBeforeCommit|MigrationMismatch)\()\s*"(\w+)"'
)


@pytest.mark.parametrize("page", PAGES)
def test_every_page_that_the_code_can_make_is_in_the_documentation(page: str) -> None:
    pages = [path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md")]
    assert sum(f"```{{reference}} {page}\n" in text for text in pages) == 1


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
    assert [metric.name for metric in METRICS if f"`{metric.name}`" not in metrics] == []
    assert [machine.name for machine in declared() if f"## {machine.name}\n" not in machines] == []


def test_every_error_code_of_the_shell_and_the_kernel_is_documented() -> None:
    documented = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/reference/errors.md").read_text(), re.MULTILINE))
    texts = [path.read_text() for path in SHELL]
    given = {code for text in texts for code in GIVEN.findall(text)}
    assert len(given) > 30
    assert given - documented == set()
    assert documented - {word for text in texts for word in re.findall(r'"(\w+)"', text)} == set()
