"""The commands of the tutorial, run as they stand there in an empty folder; only the year is shorter."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from tests.e2e.process import PATIENCE, environment, patra, up

BUS_PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "publish-and-consume.md"
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


def test_a_newcomer_publishes_consumes_and_replays_a_dead_letter(tmp_path: Path) -> None:
    text = BUS_PAGE.read_text(encoding="utf-8")
    files = re.findall(r"`([\w./]+\.(?:py|yaml|toml))`[:.][^`]*?\n\n(?:[^`]*\n\n)?```\w+\n(.*?)```", text, re.DOTALL)
    assert [name for name, _ in files] == ["contracts/order.placed.yaml", "patra.toml", "consumers.py", "producer.py"]
    for name, content in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    said: list[str] = []
    for command in re.findall(r"^    ((?:patra|python) .*)$", text, re.MULTILINE):
        done = subprocess.run(
            shlex.split(command), cwd=tmp_path, env=environment(PATH=path), capture_output=True, text=True,
            timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        said.append(f"{command}\n{done.stdout}{done.stderr}")
    whole = "".join(said)
    assert whole.count("mail for o-1") == whole.count("mail for o-2") == 1
    assert whole.count("invoice for o-1") == whole.count("invoice for o-2") == 1
    assert "refused: b_payload_invalid: /payload/cents" in whole
    first, second = re.findall(r"^o-2 (.*)$", whole, re.MULTILINE)
    assert first == second
    assert "free_order" in whole
    assert "[('o-1', 500), ('o-2', 0)]" in whole, "a row of one's own, once for each event"
    assert any(one.startswith("patra bus dead-letters\nnothing found") for one in said)


STARTED = PAGE.with_name("getting-started.md")


def test_a_newcomer_gets_started(tmp_path: Path) -> None:
    shown = dict(re.findall(r"^\$ (.+)\n((?:(?!\$ |```).+\n)*)", STARTED.read_text("utf-8"), re.MULTILINE))
    assert {"patra up", "patra doctor"} <= set(shown)
    with up(tmp_path) as process:
        answers = {path: msgspec.json.decode(process.get(path).data) for path in ("/ready", "/nowhere")}
        refusal = shown["curl -s http://127.0.0.1:8642/nowhere"]
        assert answers["/nowhere"] == msgspec.json.decode(refusal)
        assert shown["curl -s http://127.0.0.1:8642/ready"].startswith('{"ready":true,"reasons":[],"loops":')
        assert (answers["/ready"]["ready"], answers["/ready"]["reasons"]) == (True, [])
        assert (tmp_path / "patra.db").exists()
    assert subprocess.run(["bash", "-n"], input=patra(tmp_path, "completion", "bash").stdout, text=True).returncode == 0
    setting = re.search(r"```toml\n# (patra\.toml)\n(.+?)```", STARTED.read_text("utf-8"), re.DOTALL)
    assert setting is not None
    (tmp_path / setting[1]).write_text(setting[2], "utf-8")
    doctor = patra(tmp_path, "doctor")
    assert doctor.returncode == 0, doctor.stdout
    said = patra(tmp_path, "config", "show", PATRA_LOG_LEVEL="debug", COLUMNS="200").stdout
    rows = [line.split() for line in said.splitlines()]
    _, *promised = shown["PATRA_LOG_LEVEL=debug patra config show"].splitlines()
    for name, value, origin in (line.split() for line in promised if line != "…"):
        assert [name, value, origin.replace("…", str(tmp_path))] in [row[:3] for row in rows], said
