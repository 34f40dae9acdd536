"""The commands of the tutorial, run as they stand there by somebody in an empty folder; only the year is shorter."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.e2e.process import PATIENCE, environment

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "harvest-pubmed.md"
SERVE = "python -m patra.demo.providers_http"


def commands() -> list[str]:
    """Every indented line, up to the part that needs the internet."""
    text, _, real = PAGE.read_text(encoding="utf-8").partition("## 6. The real one")
    assert "NCBI_API_KEY" in real
    return re.findall(r"^    (\S.*)$", text, re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty folder, with the providers of the page's first command serving beside it."""
    providers = subprocess.Popen(
        [sys.executable, *shlex.split(SERVE)[1:], "0"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert providers.stdout is not None
    for line in providers.stdout:
        if line.startswith("Ctrl-C"):
            break
    yield tmp_path
    providers.kill()
    providers.wait()
    providers.stdout.close()


def test_a_newcomer_gets_through_the_tutorial(folder: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    said: dict[str, str] = {}
    first, *rest = commands()
    assert first == SERVE
    # whole days, and none so young that a pack still waits for it: then all three have the same papers
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    span = " ".join(
        f"--{name} {at:%Y-%m-%dT%H:%M:%SZ}"
        for name, at in (("from", today - timedelta(days=20)), ("to", today - timedelta(days=3)))
    )
    for command in rest:
        shorter = command.replace("--from P365D", span).replace("limits.maxDepth=80", "limits.maxDepth=12")
        result = subprocess.run(
            shlex.split(shorter),
            cwd=folder,
            env=environment(PATH=path),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
        said[command] = result.stdout + result.stderr

    def of(text: str) -> str:
        return next(output for command, output in said.items() if text in command)

    assert "accept" in of("ingest try")
    windows = re.search(r"(\d+) of (\d+) windows done", of("ingest run pubmed"))
    assert windows is not None
    assert windows[1] == windows[2]
    assert int(windows[2]) > 1, "a crowded window is cut"
    assert re.search(r"rows in otters\.duckdb", of("--dedupe"))
    assert "Journal of Estuaries" in of("SELECT container")
    assert (folder / "pubmed.csv").stat().st_size > 0
    assert (folder / "pubmed.jsonl.gz").stat().st_size > 0
    found = re.findall(r"(\d+) new records", " ".join(said.values()))
    assert len(found) == 3
    assert len(set(found)) == 1, "each of the three sources has the same papers"
