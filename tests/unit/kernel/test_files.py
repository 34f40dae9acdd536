"""Files that are there whole or not at all."""

from pathlib import Path

import pytest

from patra.kernel import files
from patra.kernel.errors import ConfigInvalid
from patra.kernel.files import ObjectStorage, StorageCodes, write_whole


def test_a_file_is_there_whole_and_nothing_beside_it(tmp_path: Path):
    path = tmp_path / "new" / "file.bin"
    write_whole(path, b"first")
    write_whole(path, b"second")
    assert path.read_bytes() == b"second"
    assert list(path.parent.iterdir()) == [path]


def test_bytes_and_then_the_name_are_on_the_disk_before_it_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "file.bin"
    synced: list[tuple[bool, bool]] = []
    monkeypatch.setattr(files, "sync", lambda place: synced.append((place.is_dir(), path.exists())))
    write_whole(path, b"x")
    assert synced == [(False, False), (True, True)]


def test_a_disk_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "file.bin"
    write_whole(path, b"old")

    def full(place: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "sync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("url", ["nonsense", "gopher://bucket/x", "s3://", "", "http://[::1"])
def test_a_url_of_no_kind_is_refused_with_its_place_and_advice(url: str):
    pytest.importorskip("obstore")
    codes = StorageCodes(missing="x_missing", refused="x_refused", unavailable="x_away")
    with pytest.raises(ConfigInvalid) as caught:
        ObjectStorage(url, codes, place="ingest.history_url")
    assert (caught.value.code, caught.value.place) == ("config_wrong_value", "ingest.history_url")
    assert "s3://bucket/folder" in caught.value.advice
