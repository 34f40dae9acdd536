"""What is stored comes out whole in every format, page by page, and a broken export leaves nothing behind."""

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

from patra.ingest.landing.records import pack_body
from patra.ingest.packs.work import Origin, work_of
from patra.ingest.works.export import JOINED, RECORDS, WORKS, joined_rows, record_rows, work_rows
from patra.ingest.works.file_writers import Format, export, format_of, sink
from patra.ingest.works.read import count, pages, stored_work
from patra.kernel.db import Database, migrate, open_database
from patra.kernel.errors import Invalid


@pytest.fixture
def db() -> Iterator[Database]:
    found = open_database("sqlite:///:memory:")
    migrate(found, ["patra.kernel", "patra.ingest"])
    rows = [row("crossref", n, {"doi": f"10.1/{n}", "title": f"=Crossref {n}"}) for n in range(4500)]
    rows += [row("openalex", n, {"doi": f"10.1/{n}", "abstract": "Wörter", "openalex": f"W{n}"}) for n in range(10)]
    rows.append(row("pubmed", 1, {}, deleted=1))
    found.run(lambda tx: tx.insert("ing_record", rows))
    yield found
    found.close()


def row(source: str, number: int, fields: dict[str, Any], deleted: int = 0) -> dict[str, Any]:
    more = {
        "authors": [{"name": "Ada Lovelace", "given": "Ada", "affiliation": ["Oslo"]}],
        "issued": {"at": "2019-03-01T00:00:00Z", "precision": "month"},
        "ids": {"x": str(number)},
    }
    content = {"fields": {} if deleted else {**fields, **more}, "raw": {"as": "it came", "long": "x" * 500}}
    return {
        "provenance_code": source,
        "endpoint_name": "works",
        "provider_id": f"{number:06}",
        "updated_at": 1_700_000_000_000_000 + number,
        "deleted": deleted,
        "expr_hash": "h",
        "content": pack_body(msgspec.json.encode(content)),
        "content_hash": "c",
        "task_id": "t",
        "run_id": "r",
        "batch_no": 1,
        "first_seen_at": 1,
        "changed_at": 1,
        "refresh_checked_at": 1,
    }


def test_pages_give_every_record_once_in_the_order_of_the_keys(db: Database) -> None:
    found = [(r[0], r[2]) for page in pages(db, size=1000) for r in page]
    assert len(found) == count(db) == 4511
    assert found == sorted(set(found))
    assert {r[0] for page in pages(db, ["openalex", "pubmed"]) for r in page} == {"openalex", "pubmed"}
    assert count(db, ["openalex", "pubmed"]) == 11


def test_records_go_out_as_they_are_stored(db: Database, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl.gz"
    assert export(record_rows(db, ["openalex"]), sink(path, format_of(path), RECORDS)) == 10
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        first = json.loads(next(lines))
    assert (first["fields"]["doi"], first["raw"]["as"]) == ("10.1/0", "it came")


@pytest.mark.parametrize("name", ["w.jsonl", "w.csv", "w.parquet", "w.duckdb"])
def test_works_in_every_format(db: Database, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    seen: list[int] = []
    assert export(work_rows(db), sink(path, format_of(path), WORKS), seen.append) == sum(seen) == 4511
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    match format_of(path):
        case Format.JSONL:
            assert json.loads(path.read_text(encoding="utf-8").splitlines()[0])["issued_precision"] == "month"
        case Format.CSV:
            with path.open(encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
            assert (len(rows), rows[0]["title"]) == (4511, "'=Crossref 0")  # no spreadsheet will run it
            assert json.loads(rows[0]["authors"])[0]["name"] == "Ada Lovelace"
        case Format.PARQUET:
            check(duckdb.sql(f"SELECT * FROM '{path}'"))
        case Format.DUCKDB:
            with duckdb.connect(str(path)) as con:
                check(con.sql("SELECT * FROM works"))


def check(works: Any) -> None:
    assert works.aggregate("count(*)").fetchall() == [(4511,)]
    one = works.filter("source = 'openalex'").order("id").limit(1)
    found = one.project("doi, abstract, authors[1].given, year(issued), issued_precision, ids['x'], deleted").fetchall()
    assert found == [("10.1/0", "Wörter", "Ada", 2019, "month", "0", False)]
    assert works.filter("deleted").project("source").fetchall() == [("pubmed",)]


def test_works_carry_no_address_and_records_are_as_they_came(db: Database, tmp_path: Path) -> None:
    address = "ann@example.org"
    fields = {"title": f"Letter from {address}", "url": f"https://x.example/{address}", "doi": "10.1/private"}
    db.run(lambda tx: tx.insert("ing_record", [row("zenodo", 1, fields)]))
    for made in (work_rows(db, ["zenodo"]), joined_rows(db, tmp_path, ["zenodo"])):
        [[work]] = list(made)
        assert work["title"] == "Letter from ***"
        assert work["url"] == f"https://x.example/{address}"
        assert work["authors"][0]["affiliation"] == ["Oslo"]
    [[record]] = list(record_rows(db, ["zenodo"]))
    assert record["fields"]["title"] == f"Letter from {address}"


def test_joined_works_say_who_gave_what(db: Database, tmp_path: Path) -> None:
    path = tmp_path / "joined.parquet"
    assert export(joined_rows(db, tmp_path), sink(path, format_of(path), JOINED)) == 4501
    found = duckdb.sql(
        f"SELECT sources, given_by['abstract'], given_by['title'], title FROM '{path}' WHERE doi = '10.1/3'"
    )
    assert found.fetchall() == [(["crossref", "openalex"], "openalex", "crossref", "=Crossref 3")]


@pytest.mark.parametrize("name", ["w.jsonl", "w.csv", "w.parquet", "w.duckdb"])
def test_an_export_that_breaks_leaves_nothing_and_spares_what_was_there(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("the old one")

    def broken() -> Iterator[list[dict[str, Any]]]:
        yield [{"source": "a"}]
        raise RuntimeError("the store went away")

    with pytest.raises(RuntimeError):
        export(broken(), sink(path, format_of(path), WORKS))
    assert path.read_text() == "the old one"
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_a_name_that_tells_no_format_is_refused() -> None:
    with pytest.raises(Invalid, match="has no ending of a known format"):
        format_of(Path("works.xlsx"))
    assert format_of(Path("works.xlsx"), "csv") is Format.CSV


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"doi": "10.1/x", "title": "T", "authors": [{"name": "Ada"}]},
        {"doi": "10.1/x", "source": "another", "id": "another", "deleted": True, "updated": "never"},
        {"pmid": 29456894, "ids": {"core": 7}, "authors": ["Ada  Lovelace", {"given": "Grace"}]},
        {"title": 'A "quoted" } title\u2028', "unknown": {"deep": [1, {}]}},
    ],
)
def test_fields_read_as_a_work_at_once_are_what_the_rule_makes_of_them(fields: dict[str, Any]) -> None:
    content = pack_body(msgspec.json.encode({"fields": fields, "raw": {"as": "it came"}}))
    found = stored_work(("s", "e", "1", 1_700_000_000_000_000, 0, content, 0))
    assert found == work_of(fields, Origin(source="s", endpoint="e", id="1", updated_at=1_700_000_000_000_000))


def test_fields_that_make_no_work_make_none() -> None:
    content = pack_body(msgspec.json.encode({"fields": {"language": ["en"]}}))
    assert stored_work(("s", "e", "1", 1, 0, content, 0)) is None


def test_a_count_of_citations_has_an_instant_of_the_source_or_that_of_its_landing() -> None:
    def instant(**citations: Any) -> str | None:
        content = pack_body(msgspec.json.encode({"fields": {"doi": "10.1/x", "citations": {"count": 3, **citations}}}))
        found = stored_work(("s", "e", "1", 1, 0, content, 1_700_000_000_000_000))
        return found.citations.at if found is not None and found.citations is not None else None

    assert instant() == "2023-11-14T22:13:20Z"
    assert instant(at="2020-01-01T00:00:00Z") == "2020-01-01T00:00:00Z"
