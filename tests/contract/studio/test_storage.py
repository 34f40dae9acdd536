"""Where artifacts lie outside this machine: the same contract for a folder and for an S3 server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from patra.kernel.errors import Permanent, Transient
from patra.studio.storage.artifacts import ArtifactStore
from patra.studio.storage.object_storage import ObjectStorage
from patra.studio.vocabulary.reasons import Reason
from tests import services


@pytest.fixture(scope="module")
def s3_endpoint() -> Iterator[str]:
    with services.s3("films") as endpoint:
        yield endpoint


@pytest.fixture
def s3(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The endpoint, named by the environment as users name theirs."""
    for name, value in services.s3_environment(s3_endpoint).items():
        monkeypatch.setenv(name, value)
    return s3_endpoint


@pytest.fixture(params=["folder", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place of its own for each test."""
    if request.param == "s3":
        request.getfixturevalue("s3")
        return f"s3://films/{tmp_path.name}"
    (tmp_path / "bucket").mkdir()
    return (tmp_path / "bucket").as_uri()


def kept(store: ArtifactStore, data: bytes = b"hello", name: str = "a.txt"):
    with store.workspace() as folder:
        (folder / name).write_bytes(data)
        return store.keep(folder / name, "text", "text/plain")


def test_what_was_put_comes_back_byte_by_byte(url, tmp_path):
    storage, data = ObjectStorage(url), bytes(range(256)) * 40_000  # past the size of one part
    (tmp_path / "big").write_bytes(data)
    storage.put("blobs/ab/big.mp4", tmp_path / "big")
    assert storage.get("blobs/ab/big.mp4", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == data
    assert storage.uri("blobs/ab/big.mp4") == f"{url}/blobs/ab/big.mp4"


def test_what_was_not_put_is_not_there(url, tmp_path):
    assert not ObjectStorage(url).get("blobs/no/thing", tmp_path / "thing")


def test_putting_again_is_no_harm(url, tmp_path):
    storage = ObjectStorage(url)
    for text in ("one", "two"):
        (tmp_path / "a").write_text(text)
        storage.put("a", tmp_path / "a")
    assert storage.get("a", tmp_path / "b")
    assert (tmp_path / "b").read_text() == "two"


def test_another_machine_finds_the_work(url, tmp_path):
    here, there = (ArtifactStore(tmp_path / name, ObjectStorage(url)) for name in ("here", "there"))
    artifact = kept(here)
    here.commit({"a": 1}, [artifact])
    assert artifact.uri.startswith(url)
    assert there.find({"a": 1}) is not None
    assert there.verify(artifact).read_bytes() == b"hello"
    assert there.find({"a": 2}) is None
    assert there.orphans() == []


def test_a_copy_that_is_not_what_its_name_says_is_not_taken(url, tmp_path):
    here, there = (ArtifactStore(tmp_path / name, ObjectStorage(url)) for name in ("here", "there"))
    artifact = kept(here)
    here.commit({"a": 1}, [artifact])
    (tmp_path / "wrong").write_bytes(b"hullo")
    ObjectStorage(url).put(f"blobs/{artifact.sha256[:2]}/{artifact.sha256}.txt", tmp_path / "wrong")
    with pytest.raises(Permanent) as refused:
        there.path(artifact)
    assert refused.value.code == Reason.ARTIFACT_CORRUPT
    assert there.find({"a": 1}) is None
    assert there.orphans() == []


def test_a_film_lies_in_the_storage_and_its_event_names_that_copy(url, site, tmp_path):
    site.remote = ObjectStorage(url)
    site.studio = site.opened()
    run_id = site.submit("The sea was calm at dusk.")
    site.drain(run_id)
    (published,) = [e for e in site.log(run_id) if e.event_type == "artifact.published"]
    uri = published.payload["final_artifact_uri"]
    assert uri.startswith(f"{url}/blobs/")
    assert ObjectStorage(url).get(uri.removeprefix(f"{url}/"), tmp_path / "film.mp4")
    assert (tmp_path / "film.mp4").read_bytes() == site.studio.film(run_id)[0].read_bytes()


def test_a_wrong_key_is_refused_and_not_tried_again(s3, monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "guessed")
    with pytest.raises(Permanent) as refused:
        ObjectStorage("s3://films").get("a", tmp_path / "a")
    assert refused.value.code == Reason.SERVER_REFUSED


def test_a_storage_that_is_away_may_be_tried_again(s3, monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_ENDPOINT", f"http://127.0.0.1:{services.free_port()}")
    (tmp_path / "a").write_text("a")
    with pytest.raises(Transient) as away:
        ObjectStorage("s3://films").put("a", tmp_path / "a")
    assert away.value.code == Reason.SERVER_UNAVAILABLE
