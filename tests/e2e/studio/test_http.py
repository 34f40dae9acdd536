"""Over HTTP: submit, follow the server-sent story to its end, fetch the film."""

import hashlib
import json
import re
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from patra.app.components.studio import StudioEngine
from patra.app.configuration.engine_settings import StudioSettings
from patra.app.configuration.settings import Settings, StoreSettings, WebSettings
from patra.bus import operations
from patra.studio.film.ffmpeg import probe
from patra.studio.film.quality import QUALITIES
from tests.prove.studio_kills import TINY
from tests.unit.web.served import Client, served


def settings(folder: Path) -> Settings:
    return Settings(
        store=StoreSettings(url=f"sqlite:///{folder / 'patra.db'}"),
        web=WebSettings(port=0),
        studio=StudioSettings(folder=str(folder / "films")),
    )


def test_a_film_is_made_over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, context: BrowserContext) -> None:
    monkeypatch.setitem(QUALITIES, "draft", TINY)
    with served(settings(tmp_path)) as client:
        client.patra.start(["studio"])
        body = json.dumps({"chapter": "The Test\n\nThe sea was calm.\n\nA boat came home."}).encode()
        answer = client.post("/studio/runs", body=body, headers={"Content-Type": "application/json"})
        assert answer.status == 202, answer.data
        links = msgspec.json.decode(answer.data)["links"]
        assert client.get(links["run"]).status == 200  # at once, whether the run is created yet or not
        story = client.get(links["events"]).data.decode()
        kinds = [line.removeprefix("event: ") for line in story.splitlines() if line.startswith("event: ")]
        assert kinds[-1] == "end"
        assert '"stage":"completed"' in story
        film = client.get(links["film"])
        assert film.headers["Content-Type"] == "video/mp4"
        (tmp_path / "film.mp4").write_bytes(film.data)
        assert probe(tmp_path / "film.mp4").streams == ("Video", "Audio", "Subtitle")
        _shown_in_parts(client, links["run"])
        _played_by_shots(client, links["run"].rpartition("/")[2], context.new_page())
        _edited(client, links["run"])
        ended = client.post(f"{links['run']}/cancel")
        assert (ended.status, msgspec.json.decode(ended.data)["code"]) == (409, "s_run_not_running")
        assert msgspec.json.decode(client.get("/studio/runs").data)["runs"][0]["title"] == "The Test"


def _shown_in_parts(client: Client, run: str) -> None:
    """A picture of each shot, captions that a player takes, the manifest; and all of them on the console's page."""
    captions = client.get(f"{run}/captions")
    assert captions.headers["Content-Type"].startswith("text/vtt")
    assert captions.data.decode().startswith("WEBVTT\n\n00:00:0")
    assert "boat" in captions.data.decode()
    manifest = msgspec.json.decode(client.get(f"{run}/manifest").data)
    assert [(one["kind"], one["media_type"]) for one in manifest["artifacts"]] == [
        ("film", "video/mp4"),
        ("subtitles", "application/x-subrip"),
        ("subtitles", "text/vtt"),
        ("poster", "image/jpeg"),
    ]
    assert hashlib.sha256(captions.data).hexdigest() == manifest["artifacts"][2]["sha256"]
    run_id = run.rpartition("/")[2]
    page = client.get(f"/console/studio/run/{run_id}").data.decode()
    stills = re.findall(r'<img class="pic" src="([^"]*)"', page)
    assert len(stills) == len(manifest["work"]["shots"]) >= 2
    for path in stills:
        still = client.get(path)
        assert (still.status, still.headers["Content-Type"], still.data[:2]) == (200, "image/jpeg", b"\xff\xd8")
    assert f'<track kind="captions" src="/console/studio/captions/{run_id}"' in page
    assert client.get(f"/console/studio/captions/{run_id}").data == captions.data
    assert manifest["artifacts"][0]["sha256"] in page
    nothing = client.get(f"{run}/shots/shot_nothing/still")
    assert (nothing.status, msgspec.json.decode(nothing.data)["code"]) == (404, "s_artifact_missing")
    assert msgspec.json.decode(client.get("/studio/runs/run_x/captions").data)["code"] == "s_run_unknown"


def _played_by_shots(client: Client, run_id: str, page: Page) -> None:
    """The bar of shots, the pictures, the keys and the address lead to the places where shots begin."""
    starts = msgspec.json.decode(client.get(f"/studio/runs/{run_id}/manifest").data)["facts"]["starts_ms"]
    now = "document.querySelector('#film').currentTime"
    page.goto(f"{client.url}/console/studio/run/{run_id}?shot=2")
    bar = page.locator("#shotbar a")
    expect(bar).to_have_count(len(starts))
    expect(bar.nth(1)).to_have_attribute("aria-current", "true")
    assert abs(page.evaluate(now) - starts[1] / 1000) < 0.1
    expect(page.locator(".shots li").nth(1)).to_have_attribute("aria-current", "true")
    page.keyboard.press(",")
    expect(bar.nth(0)).to_have_attribute("aria-current", "true")
    page.keyboard.press(".")
    expect(bar.nth(1)).to_have_attribute("aria-current", "true")
    page.get_by_label("Play shot 1").click()
    expect(bar.nth(0)).to_have_attribute("aria-current", "true")
    bar.nth(1).click()
    expect(page).to_have_url(re.compile(r"\?shot=2$"))
    assert abs(page.evaluate(now) - starts[1] / 1000) < 0.1


def _edited(client: Client, run: str) -> None:
    """One shot is changed and the film made again; the manifest, the shots and the audit say by whom."""
    kind, run_id = {"Content-Type": "application/json"}, run.rpartition("/")[2]

    def asked(path: str, **body: object) -> tuple[int, str]:
        answer = client.post(f"{run}{path}", body=json.dumps(body).encode(), headers=kind)
        said = msgspec.json.decode(answer.data)
        return answer.status, said.get("code") or said["stage"]

    assert asked("/shots/shot_0009/edit", place="sea") == (404, "s_shot_unknown")
    assert asked("/shots/shot_0002/edit", place="moon base") == (400, "s_edit_invalid")
    assert asked("/shots/shot_0002/edit") == (400, "s_edit_invalid")
    assert client.get("/studio/runs/run_x/shots").status == 404
    assert asked("/shots/shot_0001/edit", weather="rain", later=True) == (200, "completed")
    form = client.get(f"/console/confirm/studio.edit?run_id={run_id}&shot_id=shot_0001").data.decode()
    assert "It was" not in form
    assert "rain" in form  # what the shot is now
    assert asked("/render", shots=["shot_0002"]) == (200, "planning")
    assert asked("/shots/shot_0001/edit", place="sea")[0] == 409  # it is under way
    assert '"stage":"completed"' in client.get(f"{run}/events").data.decode()
    manifest = msgspec.json.decode(client.get(f"{run}/manifest").data)
    assert [(one["shot_id"], one["changes"]) for one in manifest["work"]["edits"]] == [
        ("shot_0001", {"weather": "rain"}),
        ("shot_0002", {"again": True}),
    ]
    shots = msgspec.json.decode(client.get(f"{run}/shots").data)["shots"]
    assert [(shot["weather"], shot["take"]) for shot in shots] == [("rain", 0), ("clear", 1)]
    page = client.get(f"/console/studio/run/{run_id}").data.decode()
    assert page.count("Render again") == page.count("Change…") == len(shots)
    acts = msgspec.json.decode(client.get("/audit?limit=10").data)
    assert "studio.edit" in json.dumps(acts)


def test_a_wish_that_nobody_knows_is_refused_by_its_place(tmp_path: Path) -> None:
    with served(settings(tmp_path)) as client:
        body = json.dumps({"chapter": "It rained.", "options": {"subtitles": "spoken"}}).encode()
        answer = client.post("/studio/runs", body=body, headers={"Content-Type": "application/json"})
        assert answer.status == 400
        assert "options.subtitles" in answer.data.decode()
        assert client.get("/studio/runs/run_nothing").status == 404
        assert client.get("/studio/runs/run_nothing/film").status == 404


def test_a_run_without_a_film_is_told_from_one_that_is_not_there(tmp_path: Path) -> None:
    with served(settings(tmp_path)) as client:
        body, kind = json.dumps({"chapter": "It rained."}).encode(), {"Content-Type": "application/json"}
        run = msgspec.json.decode(client.post("/studio/runs", body=body, headers=kind).data)["links"]["run"]
        assert msgspec.json.decode(client.get(run).data)["stage"] == "submitted"
        assert msgspec.json.decode(client.get(f"{run}/film").data)["code"] == "s_film_missing"
        resumed = client.post(f"{run}/resume", body=b"{}", headers=kind)
        assert (resumed.status, msgspec.json.decode(resumed.data)["code"]) == (409, "s_run_not_ended")
        assert client.post(f"{run}/cancel").status == 200
        answers = [client.get(f"{which}/film") for which in (run, "/studio/runs/run_nothing")]
        assert [msgspec.json.decode(a.data)["code"] for a in answers] == ["s_film_missing", "s_run_unknown"]
        assert "cancelled" in answers[0].data.decode()


def test_a_submission_while_its_type_is_frozen_may_be_tried_again(tmp_path: Path) -> None:
    with served(settings(tmp_path)) as client:
        bus = client.patra.engine(StudioEngine).studio.bus
        client.patra.db.run(lambda tx: operations.freeze(tx, bus, "task.submitted", by="ann", reason="look"))
        body, kind = json.dumps({"chapter": "It rained."}).encode(), {"Content-Type": "application/json"}
        answer = client.post("/studio/runs", body=body, headers=kind)
        assert (answer.status, msgspec.json.decode(answer.data)["code"]) == (503, "b_type_frozen")


def test_the_id_of_a_task_is_the_same_task_again_and_nobody_elses(tmp_path: Path) -> None:
    with served(settings(tmp_path)) as client:

        def submitted(**asked: str) -> tuple[int, str]:
            body = json.dumps({"chapter": "It rained.", "task_id": "mine"} | asked).encode()
            answer = client.post("/studio/runs", body=body, headers={"Content-Type": "application/json"})
            said = msgspec.json.decode(answer.data)
            return answer.status, said.get("code") or said["run_id"]

        first = submitted()
        assert first[0] == 202
        assert submitted() == first
        for other in ({"chapter": "It snowed."}, {"tenant_id": "b"}, {"project_id": "b"}, {"quality": "high"}):
            assert submitted(**other) == (409, "s_task_conflict")
