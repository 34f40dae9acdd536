"""What is written down of an exchange: it reads as a recording of ours does, and says nothing of who asked."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from patra.cli.ingest.record import command
from patra.demo.providers import library
from patra.demo.providers_http import Providers, local_pack, serve
from tests.contract.ingest.recordings.shelf import read, recording_of
from tests.unit.ingest.operations.grants import config_with_secret

WINDOW = ("--from", "2026-03-01", "--to", "2026-03-03")


@pytest.fixture(scope="module")
def providers() -> Iterator[Providers]:
    with serve(library(3, per_day=4, start=date(2026, 3, 1)), limits={}) as found:
        yield found


def record(providers: Providers, folder: Path, source: str, *options: str) -> list[Path]:
    folder.mkdir(exist_ok=True)
    file = folder / f"{source}.yaml"
    text = local_pack(source, providers.url).replace("pageSize: 500", "pageSize: 3")
    file.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(command, [str(file), *options, "--folder", str(folder / "cases"), "--json"])
    assert result.exit_code == 0, result.output
    files = sorted((folder / "cases" / source).iterdir())
    assert [(one["file"], one["status"]) for one in json.loads(result.stdout)] == [(str(file), 200) for file in files]
    return files


def test_pages_are_written_as_a_chain_that_our_tests_read(providers: Providers, tmp_path: Path) -> None:
    files = record(
        providers, tmp_path, "crossref", "works", *WINDOW, "--pages", "2", "--param", "mailto=me@example.org"
    )
    trees: list[dict[str, Any]] = [json.loads(file.read_text("utf-8")) for file in files]
    assert [tree["chain"]["seq"] for tree in trees] == [1, 2]
    assert {tree["chain"]["of"] for tree in trees} == {2}
    assert {tree["provider"] for tree in trees} == {"crossref"}
    assert "cursor=%2A" in trees[0]["request"]["url"]
    found = recording_of("mine/001", trees[0])
    assert found.status == 200
    [first, *_] = read("crossref", "works", "mine/001", found=found)
    assert first.work is not None
    assert first.work.title
    for file in files:
        assert "me@example.org" not in file.read_text("utf-8")
        assert "mailto=***" in file.read_text("utf-8")


def test_a_secret_is_nowhere_in_the_file(providers: Providers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCBI_API_KEY", "very-secret-key")
    [plain] = record(providers, tmp_path / "plain", "pubmed", "search", *WINDOW, "--pages", "1")
    assert "api_key" not in plain.read_text("utf-8"), "it is not allowed, and was not sent"
    config = config_with_secret(tmp_path, "pubmed", "NCBI_API_KEY")
    files = record(providers, tmp_path, "pubmed", "search", *WINDOW, "--pages", "1", *config)
    text = files[0].read_text("utf-8")
    assert "very-secret-key" not in text
    assert "api_key=REDACTED" in text


def test_what_is_asked_for_by_id_is_one_exchange(providers: Providers, tmp_path: Path) -> None:
    paper = providers.library.papers[1]
    [file] = record(providers, tmp_path, "pubmed", "fetch", "--id", paper.pmid)
    tree = json.loads(file.read_text("utf-8"))
    assert tree["request"]["method"] == "POST"
    assert paper.pmid in tree["request"]["body"]


def test_nothing_is_written_where_nobody_answers(tmp_path: Path) -> None:
    file = tmp_path / "crossref.yaml"
    file.write_text(local_pack("crossref", "http://127.0.0.1:9"), encoding="utf-8")
    result = CliRunner().invoke(command, [str(file), "works", "--folder", str(tmp_path / "cases")])
    assert "there is no answer to record" in str(result.exception)
