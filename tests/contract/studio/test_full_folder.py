"""A folder that is full for a while fails nothing: the studio waits."""

from pathlib import Path
from typing import Any

import pytest

from patra.kernel.errors import Permanent
from patra.studio.film.ffmpeg import run
from patra.studio.storage.artifacts import Artifact, ArtifactStore
from patra.studio.storage.full_disk import is_disk_full
from patra.studio.vocabulary.reasons import Reason
from tests.contract.studio.conftest import Site


class SmallStore(ArtifactStore):
    """Its disk is full for the first files of each kind that are kept."""

    def __init__(self, root: Path, refusals: int) -> None:
        super().__init__(root)
        self.left: dict[str, int] = {}
        self.refusals = refusals

    def keep(self, source: Path, kind: str, media_type: str, **fields: Any) -> Artifact:
        left = self.left.setdefault(kind, self.refusals)
        if left:
            self.left[kind] = left - 1
            with Path("/dev/full").open("wb") as full:
                full.write(b"x")
        return super().keep(source, kind, media_type, **fields)


def test_a_film_is_made_although_the_folder_was_full_for_a_while(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    small = SmallStore(site.folder, refusals=5)  # more often than a job is tried
    monkeypatch.setattr("tests.contract.studio.conftest.ArtifactStore", lambda *_: small)
    site.studio = site.opened()
    run_id = site.submit("The sea was calm at dusk.")
    for _ in range(5):  # it gives up waiting sooner than a service does
        site.drain(run_id)
    assert site.stage(run_id) == "completed"
    assert set(small.left.values()) == {0}
    assert len(small.left) >= 3  # sound, pictures, film
    assert [e for e in site.log(run_id) if e.payload.get("status") == "failed"] == []


def test_what_ffmpeg_says_of_a_full_disk_is_understood() -> None:
    with pytest.raises(Permanent) as caught:
        run(["-f", "lavfi", "-i", "anullsrc", "-t", "1", "-f", "wav", "-y", "/dev/full"])
    assert caught.value.code == Reason.ENCODER_FAILED
    assert is_disk_full(caught.value)
    assert not is_disk_full(Permanent(Reason.ENCODER_FAILED, "Invalid data found"))
    assert not is_disk_full(FileNotFoundError(2, "No such file"))
