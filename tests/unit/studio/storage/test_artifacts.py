import os
import subprocess
import sys

import msgspec
import pytest

from patra.kernel.errors import Permanent
from patra.studio.storage import artifacts
from patra.studio.storage.artifacts import ArtifactStore, work_key
from patra.studio.vocabulary.reasons import Reason


@pytest.fixture
def store(tmp_path):
    return ArtifactStore(tmp_path / "store")


def kept(store, text="hello"):
    with store.workspace() as folder:
        (folder / "a.txt").write_text(text)
        return store.keep(folder / "a.txt", "text", "text/plain")


def test_the_same_content_is_one_file(store):
    assert kept(store) == kept(store)
    assert len(list((store.root / "blobs").rglob("*.txt"))) == 1


def test_work_is_found_by_what_was_asked_whatever_the_order_of_its_names(store):
    artifact = kept(store)
    store.commit({"a": 1, "b": [2]}, [artifact])
    found = store.find({"b": [2], "a": 1})
    assert found is not None
    assert (found.artifacts, found.key) == ((artifact,), work_key({"a": 1, "b": [2]}))
    assert store.find({"a": 2}) is None


def test_a_manifest_whose_file_is_gone_or_cut_short_does_not_count(store):
    artifact = kept(store)
    store.commit({"a": 1}, [artifact])
    path = store.path(artifact)
    path.write_text("hell")
    assert store.find({"a": 1}) is None
    path.unlink()
    assert store.find({"a": 1}) is None


def test_a_changed_file_is_not_taken_for_the_recorded_one(store):
    artifact = kept(store)
    store.path(artifact).write_text("hullo")
    with pytest.raises(Permanent) as refused:
        store.verify(artifact)
    assert refused.value.code == Reason.ARTIFACT_CORRUPT
    with pytest.raises(Permanent) as refused:  # it is gone, so the work will be done again
        store.path(artifact)
    assert refused.value.code == Reason.ARTIFACT_MISSING


def test_a_hash_that_is_a_path_leads_out_of_the_folder_neither_to_read_nor_to_delete(store, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("hello")
    strange = msgspec.structs.replace(kept(store), sha256="../other")
    with pytest.raises(Permanent) as caught:
        store.verify(strange)
    assert caught.value.code == Reason.ARTIFACT_CORRUPT
    assert other.exists()


def test_a_workspace_is_gone_at_its_end_and_half_a_file_with_it(store):
    def breaks_off():
        with store.workspace() as folder:
            (folder / "half.mp4").write_bytes(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        breaks_off()
    assert store.orphans() == []


def test_what_a_killed_process_left_is_swept_and_a_living_ones_is_not(store):
    program = (
        "import os, sys, pathlib; from patra.studio.storage.artifacts import ArtifactStore\n"
        "with ArtifactStore(pathlib.Path(sys.argv[1])).workspace() as f:\n"
        "    (f / 'half.mp4').write_bytes(b'x'); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(store.root)])
    assert done.returncode == -9
    with store.workspace() as mine:
        assert store.sweep() == 1
        assert mine.exists()
    assert store.orphans() == []


def test_only_files_that_no_manifest_names_are_collected(store):
    named, unnamed = kept(store, "named"), kept(store, "unnamed")
    store.commit({"a": 1}, [named])
    os.utime(store.path(unnamed), (1, 1))
    assert [file.stem for file in store.orphans()] == [unnamed.sha256]
    assert store.collect(older_than=100) == 1
    assert store.find({"a": 1}) is not None


def test_a_film_that_is_read_in_many_ranges_is_hashed_once_until_it_is_written(store, monkeypatch):
    artifact = kept(store)
    hashed = []

    def recording(file):
        hashed.append(file)
        return real(file)

    real = artifacts._digest
    monkeypatch.setattr(artifacts, "_digest", recording)
    for _ in range(5):
        assert store.verify_once(artifact).read_text() == "hello"
    assert len(hashed) == 1
    times = store.path(artifact).stat()
    store.path(artifact).write_text("hullo")
    os.utime(store.path(artifact), ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(Permanent) as refused:
        store.verify_once(artifact)
    assert refused.value.code == Reason.ARTIFACT_CORRUPT
