"""`patra story` as people call it, and `GET /story` beside it, on a store that the engine has written."""

from pathlib import Path

import msgspec

from patra.app.wiring import packages
from patra.attribution.commit import commit
from patra.attribution.intake.batch import read_batch
from patra.attribution.storage.dedup_keys import Keys
from patra.kernel.canonical import sha256_hex
from patra.kernel.db import migrate, open_database
from tests.e2e.process import patra
from tests.unit.attribution.said import ALL_DUE_CLOSURES, T0, envelope, event
from tests.unit.web.served import problem, served, web_settings


def written(folder: Path) -> str:
    url = f"sqlite:///{folder / 'patra.db'}"
    db = open_database(url)
    migrate(db, packages())
    keys = Keys()
    for batch, one in (
        ("b-1", event("impression", "same", traceKey="t-1")),
        ("b-2", event("click", "c", traceKey="same")),
    ):
        body = msgspec.json.encode(envelope(one, batch=batch))
        commit(db, [read_batch(body, T0)], due=ALL_DUE_CLOSURES, keys=keys)
    db.close()
    return url


def test_the_command_tells_finds_candidates_and_says_where_it_looked(tmp_path: Path) -> None:
    url = written(tmp_path)
    told = patra(tmp_path, "story", "b-1/same", PATRA_STORE_URL=url)
    assert told.returncode == 0, told.stderr
    assert "attribution.event b-1/same" in told.stdout
    assert "event_decided" in told.stdout
    assert "[f_accepted]" in told.stdout
    assert "related  billed as: attribution.billingKey ref|ra|billable_impression" in told.stdout
    as_json = patra(tmp_path, "story", "same", "--kind", "eventId", "--json", PATRA_STORE_URL=url)
    assert msgspec.json.decode(as_json.stdout)["kind"] == "attribution.eventId"
    several = patra(tmp_path, "story", "same", PATRA_STORE_URL=url)
    assert several.returncode == 1
    assert "patra story same --kind attribution.traceKey" in several.stdout
    nothing = patra(tmp_path, "story", "nobody", PATRA_STORE_URL=url)
    assert nothing.returncode == 1
    assert "nobody was not found" in nothing.stdout
    assert "  bus: trace_id, correlation_id, idempotency_key" in nothing.stdout
    wrong = patra(tmp_path, "story", "same", "--kind", "nonsense", PATRA_STORE_URL=url)
    assert (wrong.returncode, "story_kind_unknown" in wrong.stderr) == (5, True)


def test_the_interface_tells_the_same(tmp_path: Path) -> None:
    url = written(tmp_path)
    settings = web_settings()
    settings = msgspec.structs.replace(settings, store=msgspec.structs.replace(settings.store, url=url))
    with served(settings) as client:
        found = msgspec.json.decode(client.get("/story?key=ref%7Cra&limit=2").data)
        assert (found["outcome"], found["kind"], len(found["entries"])) == ("found", "attribution.closureKey", 2)
        following = msgspec.json.decode(client.get(f"/story?key=ref%7Cra&limit=500&after={found['next']}").data)
        ids = [one["id"] for one in found["entries"] + following["entries"]]
        assert len(ids) == len(set(ids)) > 2
        assert msgspec.json.decode(client.get("/story?key=nobody").data)["outcome"] == "unknown"
        assert problem(client.get("/story?key=x&kind=nonsense"))["code"] == "query_invalid"
        assert problem(client.get("/story"))["code"] == "query_invalid"


def test_a_viewer_may_ask_and_others_may_not() -> None:
    token = "v" * 40
    with served(web_settings(viewer_tokens=(f"vera=sha256:{sha256_hex(token)}",))) as client:
        assert problem(client.get("/story?key=x"))["code"] == "token_missing"
        assert client.get("/story?key=x", token=token).status == 200
