"""An app that is bound to a signing secret proves each `responseReference` to be its own."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from patra.app.configuration.engine_settings import AttributionSettings
from patra.app.configuration.settings import Settings, StoreSettings, WebSettings
from patra.app.wiring import build
from patra.attribution.intake.response_proof import proof_of
from patra.kernel.errors import ConfigInvalid
from patra.web.asgi import app
from patra.web.uvicorn_server import serving
from tests.contract.attribution.test_http import House, fresh_event
from tests.unit.attribution.said import envelope

SECRET, NEWER = "shared-with-the-ad-server", "the-next-one-of-the-app"


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_SIGNING", SECRET)
    monkeypatch.setenv("APP_SIGNING_NEXT", NEWER)


@contextmanager
def house(*entries: str, required: bool = False) -> Iterator[House]:
    settings = Settings(
        store=StoreSettings(url="sqlite:///:memory:"),
        web=WebSettings(port=0),
        attribution=AttributionSettings(reader_process=False, signing_secrets=entries, require_signing=required),
    )
    patra = build(settings)
    try:
        with serving(app(patra), settings.web) as server:
            yield House(patra, server.url)
    finally:
        patra.close(5)


def batch(app_id: str = "app", proofs: dict[str, Any] | None = None) -> dict[str, Any]:
    sent = envelope(fresh_event("click", "c", responseReference="r-1"), app=app_id)
    return sent if proofs is None else sent | {"extensions": {"responseProofs": proofs}}


def test_a_bound_app_is_refused_without_the_proof_and_with_a_wrong_one() -> None:
    with house("app=env:APP_SIGNING") as served:
        for sent, code in [
            (batch(), "f_response_proof_missing"),
            (batch(proofs={"r-2": proof_of(SECRET, "app", "r-2")}), "f_response_proof_missing"),
            (batch(proofs={"r-1": proof_of(SECRET, "other", "r-1")}), "f_response_proof_invalid"),
            (batch(proofs={"r-1": proof_of("guess", "app", "r-1")}), "f_response_proof_invalid"),
            (batch(proofs={"r-1": 7}), "f_response_proof_invalid"),
            (batch(proofs={"r-1": "ä"}), "f_response_proof_invalid"),
        ]:
            answer = served.post(sent)
            assert (answer.status, answer.json()["code"]) == (403, code)
            assert "'r-1'" in answer.json()["detail"]
        assert served.get("/attribution/timeline/r-1") == {"decisions": [], "next": None, "refused": []}
        served.attribution.turned_away.run_once()
        seen = served.get("/attribution/turned-away")["batches"]
        assert {one["code"]: one["count"] for one in seen} == {
            "f_response_proof_missing": 2,
            "f_response_proof_invalid": 4,
        }
        answer = served.post(batch(proofs={"r-1": proof_of(SECRET, "app", "r-1").upper()}))
        assert (answer.status, answer.json()["ackItems"][0]["ackStatus"]) == (200, "accepted")


def test_two_secrets_of_an_app_overlap_and_other_apps_need_none() -> None:
    with house("app=env:APP_SIGNING", "app=env:APP_SIGNING_NEXT") as served:
        assert served.post(batch(proofs={"r-1": proof_of(NEWER, "app", "r-1")})).status == 200
        assert served.post(batch(proofs={"r-1": proof_of(SECRET, "app", "r-1")})).status == 200
        assert served.post(batch("other")).status == 200
        assert served.post(b"{").json()["code"] == "f_batch_malformed"


def test_where_signing_is_required_an_app_that_is_bound_to_nothing_is_refused() -> None:
    with house("app=env:APP_SIGNING", required=True) as served:
        answer = served.post(batch("other"))
        assert (answer.status, answer.json()["code"]) == (403, "f_app_not_bound")
        assert served.post(batch(proofs={"r-1": proof_of(SECRET, "app", "r-1")})).status == 200


def test_a_name_that_stands_twice_is_judged_as_the_engine_reads_it() -> None:
    proofs = json.dumps({"r-1": proof_of(SECRET, "app", "r-1")})
    text = json.dumps(batch()).replace(
        '"responseReference": "r-1"', '"responseReference": "r-1", "responseReference": "r-9"'
    )
    sent = text.removesuffix("}") + f', "extensions": {{"responseProofs": {proofs}}}}}'
    with house("app=env:APP_SIGNING") as served:
        answer = served.post(sent.encode())
        assert (answer.status, answer.json()["code"]) == (403, "f_response_proof_missing")
        assert "'r-9'" in answer.json()["detail"]


@pytest.mark.parametrize("entry", ["app", "app=in the clear", "=env:APP_SIGNING", "a b=env:APP_SIGNING"])
def test_a_secret_in_the_clear_and_half_a_binding_are_refused_at_the_start(entry: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"attribution\.signing_secrets\[0\]"), house(entry):
        pass
