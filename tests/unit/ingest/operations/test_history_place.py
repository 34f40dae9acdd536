"""Where purged history goes: what is named by a file URL is a folder, and is on the disk when `put` returns."""

from pathlib import Path

import pytest

from patra.ingest.operations.history_place import history_place
from patra.kernel import files
from patra.kernel.errors import ConfigInvalid


def test_a_file_url_is_written_through_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(files, "sync", synced.append)
    folder = tmp_path / "old runs"
    place = history_place("", folder.as_uri())
    assert place is not None
    place.put("a.jsonl.zst", b"x")
    assert len(synced) == 2, "the bytes, and the name"
    assert (folder / "a.jsonl.zst").read_bytes() == b"x"
    assert (place.name, place.names(), place.read("a.jsonl.zst")) == (str(folder), ["a.jsonl.zst"], b"x")


@pytest.mark.parametrize("url", ["file://elsewhere/folder", "file://"])
def test_a_file_url_of_another_machine_is_refused(url: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"ingest\.history_url.*three slashes"):
        history_place("", url)
