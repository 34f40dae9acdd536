"""A pack begun from a sample passes the checks as it is, and `try` maps records with it."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from patra.cli.ingest.pack import pack
from patra.cli.ingest.try_source import command as trying
from patra.demo.providers import library
from patra.demo.providers_http import serve
from patra.ingest.packs.scaffold import Sample, start_pack
from patra.kernel.errors import Invalid
from tests.unit.ingest.packs.scaffold.samples import CASES, CURSOR, NEXT_LINK, OFFSET, Case


@contextmanager
def answering(case: Case) -> Generator[str]:
    """A server that gives one answer to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = case.body.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/xml" if case.body.startswith("<") else "application/json")
            for name, value in case.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the standard library's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def new(*options: str) -> Any:
    result = CliRunner().invoke(pack, ["new", "mine", *options])
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize("name", CASES)
def test_a_pack_from_one_request_is_checked_and_tried_as_it_is(name: str, tmp_path: Path) -> None:
    case, file = CASES[name], tmp_path / "mine.yaml"
    with answering(case) as url:
        new("--url", url + case.query, "-o", str(file))
        checked = CliRunner().invoke(pack, ["check", str(file)])
        assert checked.exit_code == 0, checked.output
        tried = CliRunner().invoke(trying, [str(file), "records", "--pages", "1", "--json"])
    assert tried.exit_code == 0, tried.output
    found = json.loads(tried.stdout)
    assert found["items"] == 2
    first = found["records"][0]
    assert {key: first.get(key) for key in case.first} == case.first
    assert "wrong" not in first


@pytest.mark.parametrize("name", CASES)
def test_what_a_sample_tells_is_in_the_pack(name: str, tmp_path: Path) -> None:
    case, sample = CASES[name], tmp_path / "sample"
    sample.write_text(case.body, encoding="utf-8")
    text = start_pack(
        "mine", "records", Sample(body=sample.read_bytes(), url=f"https://x.org{case.query}", headers=case.headers)
    )
    tree = yaml.safe_load(text.text)
    endpoint = tree["endpoints"]["records"]
    assert endpoint["response"]["itemsPath"] == case.items
    assert endpoint["response"]["idPath"] == case.id
    assert endpoint["response"]["updatedAtPath"] == case.updated
    assert case.pagination.items() <= endpoint["pagination"].items()
    assert endpoint["window"].get("supportsUpdatedSince", False) is case.windowed
    assert text.todo == text.text.count("TODO") > 0


def test_dates_in_the_url_become_the_window_and_an_address_a_parameter() -> None:
    made = start_pack("mine", "works", Sample(body=CURSOR.body.encode(), url=f"https://x.org{CURSOR.query}"))
    query = yaml.safe_load(made.text)["endpoints"]["works"]["http"]["queryTemplate"]
    assert query["filter"] == (
        "from-index-date:${formatDateTime(window.from, 'yyyy-MM-dd')}"
        ",until-index-date:${formatDateTime(window.until, 'yyyy-MM-dd')}"
    )
    assert (query["rows"], query["cursor"], query["mailto"]) == ("${page.size}", "${page.token}", "${params.mailto}")
    assert "me@example.org" not in made.text


def test_a_key_in_the_url_becomes_a_credential_and_is_not_written() -> None:
    made = start_pack("mine", "records", Sample(body=OFFSET.body.encode(), url=f"https://x.org{OFFSET.query}"))
    tree = yaml.safe_load(made.text)
    assert "very-secret" not in made.text
    assert tree["credentials"]["mine"]["secrets"] == {"apiKey": "env:MINE_API_KEY"}
    assert tree["defaults"]["auth"]["name"] == "api_key"


def test_where_nothing_is_called_an_id_the_fields_that_differ_are_named() -> None:
    records = [
        {"ref": f"B-{n}", "label": f"Bridge {n}", "link": f"https://x.org/{n}", "kind": "arch"} for n in range(3)
    ]
    text = start_pack(
        "mine", "records", Sample(body=json.dumps({"data": records}).encode(), url="https://x.org/a")
    ).text
    assert "in the sample, each record has its own $.ref, $.link" in text
    same = [{"ref": "B", "kind": "arch"}] * 3
    text = start_pack("mine", "records", Sample(body=json.dumps({"data": same}).encode(), url="https://x.org/a")).text
    assert "in the sample, no field is in every record with a value of its own" in text


def test_a_sample_without_its_url_says_what_is_open(tmp_path: Path) -> None:
    sample, file = tmp_path / "sample.json", tmp_path / "mine.yaml"
    sample.write_text(NEXT_LINK.body, encoding="utf-8")
    result = new("--sample", str(sample), "-o", str(file))
    assert "2 records read" in result.stderr
    text = file.read_text(encoding="utf-8")
    assert 'baseUrl: "https://x.org"' in text
    assert "TODO: read off the answer itself" in text
    assert CliRunner().invoke(pack, ["check", str(file)]).exit_code == 0


def test_the_guess_of_the_records_can_be_corrected() -> None:
    body = b'{"title": "A volume", "doi": "10.1/v", "a": 1, "b": 2, "parts": [{"id": 1, "title": "One", "date": "2026-03-01"}]}'
    whole = yaml.safe_load(start_pack("mine", "records", Sample(body=body)).text)
    parts = yaml.safe_load(start_pack("mine", "records", Sample(body=body), "$.parts").text)
    assert whole["endpoints"]["records"]["response"]["itemsPath"] == "$"
    assert parts["endpoints"]["records"]["response"]["itemsPath"] == "$.parts"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"Resource not found.", "sample_unreadable"),
        (b"<html><body>429</body></html>", "sample_unreadable"),
        (b"<a><b></a>", "sample_unreadable"),
        (b'{"message": {"items": []}}', "sample_empty"),
        (
            b'{"esearchresult": {"count": "2", "idlist": ["1", "2"], "translationset": [{"from": "a", "to": "b"}]}}',
            "sample_empty",
        ),
        (b"<eSearchResult><Count>2</Count><IdList><Id>1</Id><Id>2</Id></IdList></eSearchResult>", "sample_empty"),
    ],
)
def test_what_holds_no_records_is_refused_with_advice(body: bytes, code: str) -> None:
    with pytest.raises(Invalid) as refused:
        start_pack("mine", "records", Sample(body=body))
    assert refused.value.code == code


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    sample, there = tmp_path / "sample.json", tmp_path / "there.yaml"
    sample.write_text(NEXT_LINK.body, encoding="utf-8")
    there.write_text("mine", encoding="utf-8")
    for options in (
        ["new", "mine"],
        ["new", "my-pack!", "--sample", str(sample)],
        ["new", "mine", "--sample", str(sample), "-o", str(there)],
    ):
        assert CliRunner().invoke(pack, options).exit_code == 2
    assert there.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(("source", "items"), [("crossref", "$.message.items"), ("openalex", "$.results")])
def test_a_simulated_provider_gives_a_pack_that_maps_its_papers(source: str, items: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    with serve(library(3, per_day=4), limits={}) as providers:
        dates = {"crossref": "from-index-date:2025-11-01,until-index-date:2025-11-03"}
        query = dates.get(source, "from_publication_date:2025-11-01,to_publication_date:2025-11-03")
        new("--url", f"{providers.url}/{source}/works?filter={query}&cursor=*", "-o", str(file))
        window = ["--from", "2025-11-01", "--to", "2025-11-04"]
        tried = CliRunner().invoke(
            trying,
            [str(file), "records", *window, "--pages", "1", "--json", "--records", "50"],
        )
        assert tried.exit_code == 0, tried.output
        records = json.loads(tried.stdout)["records"]
        papers = {paper.doi: paper for paper in providers.library.papers}
    assert yaml.safe_load(file.read_text(encoding="utf-8"))["endpoints"]["records"]["response"]["itemsPath"] == items
    assert records
    for record in records:
        paper = papers[record["doi"]]
        untitled = source == "openalex" and paper.no % 41 == 0
        assert record.get("title") == (None if untitled else paper.title.replace("<i>", "").replace("</i>", ""))
        assert len(record["authors"]) == len(paper.authors)
        assert "wrong" not in record
