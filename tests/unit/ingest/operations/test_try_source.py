"""One polite request of a pack, against the simulated providers."""

import json
import socket
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from patra.cli.ingest.try_source import command
from patra.demo.providers import library
from patra.demo.providers_http import Providers, local_pack, serve
from patra.ingest.packs import bundled, registry
from patra.kernel.db import migrate, open_database
from patra.kernel.errors import Invalid
from tests.unit.ingest.operations.grants import config_with_secret


@pytest.fixture(scope="module")
def providers() -> Iterator[Providers]:
    with serve(library(3, per_day=4, start=date(2026, 3, 1)), limits={}) as found:
        yield found


def run(providers: Providers, folder: Path, source: str, *options: str) -> tuple[int, dict[str, object]]:
    file = folder / f"{source}.yaml"
    file.write_text(local_pack(source, providers.url), encoding="utf-8")
    result = CliRunner().invoke(command, [str(file), *options, "--json"])
    return result.exit_code, json.loads(result.stdout) if result.stdout.startswith("{") else {}


def test_a_list_shows_its_request_its_meaning_and_its_first_works(providers: Providers, tmp_path: Path) -> None:
    code, found = run(providers, tmp_path, "crossref", "works", "--from", "2026-03-01", "--to", "2026-03-03")
    assert code == 0
    assert "from-index-date" in str(found["url"])
    assert str(found["verdict"]).startswith("accept")
    records = found["records"]
    assert isinstance(records, list)
    assert len(records) == 3
    assert records[0]["title"]


def test_a_record_is_asked_for_by_its_id(providers: Providers, tmp_path: Path) -> None:
    paper = providers.library.papers[1]
    code, found = run(providers, tmp_path, "pubmed", "fetch", "--id", paper.pmid)
    assert (code, found["method"], found["items"]) == (0, "POST", 1)


def test_a_secret_is_never_shown(providers: Providers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCBI_API_KEY", "very-secret-key")
    config = config_with_secret(tmp_path, "pubmed", "NCBI_API_KEY")
    code, found = run(providers, tmp_path, "pubmed", "search", "--from", "2026-03-01", "--to", "2026-03-02", *config)
    assert code == 0
    assert "very-secret-key" not in json.dumps(found)
    assert "apiKey" in str(found["url"])


def test_a_credential_that_is_not_sent_is_not_shown(
    providers: Providers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = ("--from", "2026-03-01", "--to", "2026-03-02")
    monkeypatch.setenv("CROSSREF_PLUS_TOKEN", "very-secret-key")
    _, withheld = run(providers, tmp_path, "crossref", "works", *window)
    assert "Crossref-Plus-API-Token" not in str(withheld["headers"])
    config = config_with_secret(tmp_path, "crossref", "CROSSREF_PLUS_TOKEN")
    _, found = run(providers, tmp_path, "crossref", "works", *window, *config)
    assert "'Crossref-Plus-API-Token': 'Bearer {apiKey}'" in str(found["headers"])
    monkeypatch.delenv("CROSSREF_PLUS_TOKEN")
    _, without = run(providers, tmp_path, "crossref", "works", *window, *config)
    assert without["headers"] == withheld["headers"]


def test_an_answer_that_is_an_error_says_why(providers: Providers, tmp_path: Path) -> None:
    code, found = run(providers, tmp_path, "openalex", "works", "--param", "date=updated")
    assert code == 1
    assert "paid plan" in str(found["advice"])


def test_a_pack_that_does_not_compile_says_where(providers: Providers, tmp_path: Path) -> None:
    assert run(providers, tmp_path, "crossref", "work-s")[0] == 5
    assert run(providers, tmp_path, "crossref", "works", "--param", "unknown=1")[0] == 5


def test_fields_that_make_no_work_are_said_to(providers: Providers, tmp_path: Path) -> None:
    file = tmp_path / "crossref.yaml"
    text = local_pack("crossref", providers.url)
    file.write_text(text.replace("language: {path: $.language, apply: [language]}", "language: $.author"), "utf-8")
    result = CliRunner().invoke(
        command, [str(file), "works", "--from", "2026-03-01", "--to", "2026-03-03", "--json", "--records", "1"]
    )
    [record] = json.loads(result.stdout)["records"]
    assert record["wrong"].startswith("no work: Expected `str | null`, got `array` - at `$.language`")


def test_a_source_that_is_loaded_is_tried_by_its_name(providers: Providers, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'patra.db'}"
    db = open_database(url)
    migrate(db, ["patra.kernel", "patra.ingest"])
    ours = local_pack("crossref", providers.url)  # by the name of one of the distribution, with another address
    packs = [bundled.parse_pack(ours, "crossref.yaml")]
    packs.append(bundled.parse_pack(ours.replace("source: crossref", "source: mine"), "mine.yaml"))
    db.run(lambda tx: registry.load(tx, packs, by="test", now=1))
    db.close()
    config = tmp_path / "patra.toml"
    config.write_text(f'[store]\nurl = "{url}"\n')
    window = ["--from", "2026-03-01", "--to", "2026-03-03", "--config", str(config)]
    for name in ("mine", "crossref"):
        tried = CliRunner().invoke(command, [name, "works", *window])
        assert (tried.exit_code, tried.stdout.split("/crossref")[0]) == (0, f"GET {providers.url}")
    unknown = CliRunner().invoke(command, ["nobody", "works", *window])
    assert isinstance(unknown.exception, Invalid)
    assert "known: ads, arxiv" in unknown.exception.advice
    assert isinstance(CliRunner().invoke(command, ["nobody.yaml", "works"]).exception, Invalid)


def test_to_try_a_pack_of_the_distribution_makes_no_store(tmp_path: Path) -> None:
    config = tmp_path / "patra.toml"
    config.write_text(f'[store]\nurl = "sqlite:///{tmp_path / "patra.db"}"\n')
    assert CliRunner().invoke(command, ["crossref", "nowhere", "--config", str(config)]).exit_code == 5
    assert not (tmp_path / "patra.db").exists()


def test_what_is_logged_is_not_mixed_with_what_is_printed(tmp_path: Path) -> None:
    file = tmp_path / "crossref.yaml"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = taken.getsockname()[1]
    file.write_text(local_pack("crossref", f"http://127.0.0.1:{nobody}"), "utf-8")
    tried = CliRunner().invoke(command, [str(file), "works", "--json"])
    assert tried.exit_code == 1
    assert json.loads(tried.stdout)["verdict"].startswith("retry")
    assert "ingest_self_heal" in tried.stderr
