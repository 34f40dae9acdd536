"""Over HTTP: submit, follow the server-sent story to its end, fetch the film."""

import json
from pathlib import Path

import msgspec
import pytest

from patra.app.settings import Settings, StoreSettings, StudioSettings, WebSettings
from patra.app.studio import StudioEngine
from patra.bus import operations
from patra.studio.film.ffmpeg import probe
from patra.studio.film.quality import QUALITIES
from tests.prove.studio_kills import TINY
from tests.unit.web.served import served


def settings(folder: Path) -> Settings:
    return Settings(
        store=StoreSettings(url=f"sqlite:///{folder / 'patra.db'}"),
        web=WebSettings(port=0),
        studio=StudioSettings(folder=str(folder / "films")),
    )


def test_a_film_is_made_over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        ended = client.post(f"{links['run']}/cancel")
        assert (ended.status, msgspec.json.decode(ended.data)["code"]) == (409, "s_run_not_running")
        assert msgspec.json.decode(client.get("/studio/runs").data)["runs"][0]["title"] == "The Test"


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
