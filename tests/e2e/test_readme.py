"""The README as a newcomer follows it: every quick start in an empty folder, every link and picture there."""

import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from patra.ingest.operations.reads.views import schedule_history
from patra.kernel.db.opening import open_database
from tests.e2e.process import PATIENCE, environment

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PASTED = [
    "docs/tutorial/settle-ad-events.md",
    "docs/tutorial/harvest-pubmed.md",
    "docs/tutorial/publish-and-consume.md",
    "docs/tutorial/first-film.md",
    "docs/how-to/harvest-every-night.md",
]
PROVIDERS = "python -m patra.demo.providers_http"


def quick_start(title: str) -> str:
    """The five shell lines under a bold title."""
    part = README.partition(f"\n**{title}.** ")[2].partition("\n**")[0].partition("\n## ")[0]
    (block,) = [one for one in shell_blocks(part) if len(one.splitlines()) == 5]
    return block


def shell_blocks(text: str) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def shell(script: str, folder: Path, **variables: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=folder,
        env=environment(PATH=path, HOME=str(folder), EXAMPLES=str(ROOT / "examples"), **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_quick_start_can_be_pasted_into_any_shell() -> None:
    """The shell of macOS (zsh) takes what looks like a comment behind a command as its arguments."""
    pages = [README, *((ROOT / page).read_text("utf-8") for page in PASTED)]
    lines = [line for page in pages for block in shell_blocks(page) for line in block.splitlines()]
    lines += [line for page in pages for line in re.findall(r"^    (?:patra|python|export) .*$", page, re.MULTILINE)]
    assert len(lines) > 60
    assert [line for line in lines if re.search(r"\S\s+# ", line)] == []


def test_ad_events_are_settled_once_and_the_rejected_one_is_explained(tmp_path: Path) -> None:
    port = str(free_port())
    script = quick_start("Settle ad events").replace("8642", port)
    out = shell("trap 'kill $!' EXIT\n" + script, tmp_path, PATRA_WEB_PORT=port)
    assert "first: e2 accepted" in out
    assert "again: e2 duplicate" in out
    assert "shop\thome\t1\t1" in out
    assert "responseReference" in out.partition("f_event_missing_required")[2], "`rejects` names the field"
    assert "f_event_missing_required" in out
    assert "billable" in out.partition("f_event_missing_required")[2]


def test_three_sources_become_one_row_for_each_paper_by_schedule(tmp_path: Path) -> None:
    assert f"\nmkdir -p ~/patra-papers && cd ~/patra-papers && {PROVIDERS}\n" in README
    with subprocess.Popen(
        [sys.executable, *PROVIDERS.split()[1:], "0"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as providers:
        try:
            assert providers.stdout is not None
            assert any(line.startswith("Ctrl-C") for line in providers.stdout)
            script = quick_start("Harvest a topic into DuckDB, every night").replace("P30D", "P12D")  # in less time
            *commands, up = script.splitlines()
            assert shell("\n".join(commands), tmp_path).count("is added; `patra up` runs it") == 3
            assert up == "patra up"
            with server(tmp_path):
                nights = nights_done(tmp_path, 3)
        finally:
            providers.kill()
    assert {night["job"] for night in nights} == {"pubmed/otters", "crossref/otters", "openalex/otters"}
    with duckdb.connect(str(tmp_path / "otters.duckdb"), read_only=True) as library:
        assert library.execute("SELECT count(*) FROM works WHERE len(sources) = 3").fetchall()[0][0] > 0
    (reading,) = re.findall(r"^python -c .*duckdb.*$", README, re.MULTILINE)
    assert "10.5555/" in shell(reading, tmp_path)


@contextmanager
def server(folder: Path) -> Generator[None]:
    """`patra up` in the folder, on a free port, until the block ends."""
    command = [str(Path(sys.executable).parent / "patra"), "up", "--port", "0"]
    with (folder / "up.log").open("w") as log, subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as running:
        try:
            yield
        finally:
            running.terminate()


def nights_done(folder: Path, count: int) -> list[dict[str, Any]]:
    """What the schedules did, once so many have written their file."""
    waiting, until = threading.Event(), time.monotonic() + PATIENCE
    database = open_database(f"sqlite:///{folder}/patra.db")
    try:
        while time.monotonic() < until:
            history = database.read(lambda tx: schedule_history(tx, "", 10))
            if sum(night["then"] == "DONE" for night in history) >= count:
                return history
            waiting.wait(0.2)
    finally:
        database.close()
    pytest.fail((folder / "up.log").read_text("utf-8"))


def test_a_dead_letter_is_replayed_to_the_group_that_failed(tmp_path: Path) -> None:
    out = shell(quick_start("Publish and consume with a contract"), tmp_path)
    assert out.count("mail for o-1") == 1
    assert out.count("mail for o-2") == 1
    assert "free_order" in out
    assert out.index("free_order") < out.index("invoice for o-2: 0 cents")


def test_every_figure_of_the_comparison_stands_on_the_page_that_it_links_to() -> None:
    rows = [line for line in README.partition("## Compared with")[2].splitlines() if "](docs/reference/" in line]
    assert len(rows) == 4
    for row in rows:
        measured = row.split(" | ")[-1]
        (page,) = re.findall(r"\]\((docs/reference/[^)#]+)", measured)
        text = (ROOT / page).read_text("utf-8")
        figures = re.findall(r"\b\d[\d,]*\d\b", re.sub(r"\]\([^)]*\)", "", measured))
        assert figures
        assert [figure for figure in figures if figure not in text] == []


def test_every_file_that_the_readme_names_is_there() -> None:
    links = re.findall(r'(?:\]\(|src(?:set)?=")([^)#"]+)', README)
    assert len(links) > 20
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []
