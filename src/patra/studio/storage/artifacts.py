"""Keeps finished files as content-addressed artifacts with a manifest; they are found again by the work asked
(B6).

    blobs/ab/ab12….mp4      a file by the hash of its content
    work/cd/cd34….json      a manifest by the key of the work: inputs, profile, versions, what came out
    tmp/<id>/               a workspace; its lock is held while its owner lives

A blob gets its name by a rename after it is whole and on disk; a manifest is written after its blobs. So a half-written
file never has a name that counts, and a manifest never names a file that is not there. What a killed process left
behind is swept: its workspace's lock is free.
"""

import fcntl
import hashlib
import os
import re
import shutil
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec

from patra.kernel.canonical import fingerprint
from patra.kernel.errors import Permanent
from patra.kernel.files import sync
from patra.kernel.ids import new_id
from patra.studio.vocabulary.reasons import Reason

PIECE = 1 << 20
MAX_HASHED_FILES = 1024
_DIGEST = re.compile(r"[0-9a-f]{64}").fullmatch


class Artifact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A thing that was made, as the contracts write it (C§2.5 artifacts)."""

    artifact_id: str
    kind: str
    uri: str
    media_type: str
    sha256: str
    bytes: int
    duration_ms: int | None = None
    width: int | None = None
    height: int | None = None
    shot_id: str | None = None
    language: str | None = None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked, with what it was made, and what came out."""

    key: str
    work: dict[str, Any]
    artifacts: tuple[Artifact, ...]
    facts: dict[str, Any] = {}


class Remote(Protocol):
    """A place outside this machine that keeps the same files under the same names."""

    def put(self, name: str, source: Path, /) -> None: ...
    def get(self, name: str, target: Path) -> bool: ...
    def uri(self, name: str) -> str: ...


def work_key(work: Mapping[str, Any]) -> str:
    """The identity of a piece of work: the same inputs, profile and versions are the same work."""
    return fingerprint(dict(work))


class ArtifactStore:
    """A folder of finished files; with a `remote`, a copy of each lies there too, and that copy is the one named."""

    def __init__(self, root: Path, remote: Remote | None = None) -> None:
        self.root = root.resolve()
        self._remote = remote
        self._hashing = threading.Lock()
        self._hashed: dict[str, tuple[int, int, int, int]] = {}  # by hash: the file as it was when it was hashed
        for folder in ("blobs", "work", "tmp"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)

    @contextmanager
    def workspace(self) -> "Generator[Path]":
        """A folder for unfinished files; it is gone at the end, whatever happens."""
        folder = self.root / "tmp" / new_id()
        folder.mkdir()
        lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)

    def keep(self, source: Path, kind: str, media_type: str, **fields: Any) -> Artifact:
        """Take a finished file of a workspace into the store, under the hash of its content."""
        digest, size = _digest(source)
        name = f"blobs/{digest[:2]}/{digest}{source.suffix}"
        target = self.root / name
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            source.rename(target)
            sync(target.parent)
        if self._remote:
            self._remote.put(name, target)
        uri = self._remote.uri(name) if self._remote else target.as_uri()
        return Artifact(
            artifact_id=f"art_{digest[:24]}",
            kind=kind,
            uri=uri,
            media_type=media_type,
            sha256=digest,
            bytes=size,
            **fields,
        )

    def commit(
        self, work: Mapping[str, Any], artifacts: Sequence[Artifact], facts: Mapping[str, Any] | None = None
    ) -> Manifest:
        """Record what a piece of work gave; from here on it is found."""
        key = work_key(work)
        manifest = Manifest(key=key, work=dict(work), artifacts=tuple(artifacts), facts=dict(facts or {}))
        name = f"work/{key[:2]}/{key}.json"
        target = self.root / name
        target.parent.mkdir(exist_ok=True)
        with self.workspace() as folder:
            draft = folder / "manifest.json"
            with draft.open("wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=1))
                file.flush()
                os.fsync(file.fileno())
            draft.rename(target)
        sync(target.parent)
        if self._remote:
            self._remote.put(name, target)
        return manifest

    def find(self, work: Mapping[str, Any]) -> Manifest | None:
        """What this very work gave before, if all of it is still there."""
        key = work_key(work)
        name = f"work/{key[:2]}/{key}.json"
        target = self.root / name
        if not target.exists() and not self._fetch_file(name):
            return None
        try:
            manifest = msgspec.json.decode(target.read_bytes(), type=Manifest)
            for artifact in manifest.artifacts:
                self.path(artifact)
        except (Permanent, msgspec.DecodeError):
            return None
        return manifest

    def path(self, artifact: Artifact | Mapping[str, Any]) -> Path:
        """The local file of an artifact. Raises when it is missing or not of the recorded size."""
        found = artifact if isinstance(artifact, Artifact) else msgspec.convert(artifact, Artifact)
        if not _DIGEST(found.sha256):  # a manifest of others could name a file outside, which `verify` might delete
            raise Permanent(Reason.ARTIFACT_CORRUPT, f"{found.kind} has no sha256")
        name = f"blobs/{found.sha256[:2]}/{found.sha256}{Path(found.uri).suffix}"
        target = self.root / name
        if not target.exists() and not self._fetch_file(name, found.sha256):
            raise Permanent(Reason.ARTIFACT_MISSING, f"{found.kind} {found.sha256}")
        if target.stat().st_size != found.bytes:
            raise Permanent(Reason.ARTIFACT_CORRUPT, f"{found.kind} {found.sha256} has {target.stat().st_size} bytes")
        return target

    def verify(self, artifact: Artifact) -> Path:
        """As `path`, with the content hashed again. A file that is not as its name says is deleted."""
        target = self.path(artifact)
        if _digest(target)[0] != artifact.sha256:
            target.unlink(missing_ok=True)
            raise Permanent(Reason.ARTIFACT_CORRUPT, f"{artifact.kind} {artifact.sha256}")
        return target

    def verify_once(self, artifact: Artifact) -> Path:
        """As `verify`, but a file that was hashed and has not been written since is not hashed again.

        For callers that read a film in a thousand small ranges. Of all threads that ask at once, one hashes.
        """
        target = self.path(artifact)
        with self._hashing:
            seen = target.stat()
            mark = (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
            if self._hashed.get(artifact.sha256) != mark:
                target = self.verify(artifact)
                if len(self._hashed) >= MAX_HASHED_FILES:
                    self._hashed.clear()
                self._hashed[artifact.sha256] = mark
        return target

    def sweep(self) -> int:
        """Remove what killed processes left: workspaces whose lock is free. Gives how many."""
        swept = 0
        for folder in (self.root / "tmp").iterdir():
            if _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)
                swept += 1
        return swept

    def orphans(self) -> list[Path]:
        """Files that no manifest names. Some are only young: their manifest is about to be written."""
        named = {
            artifact.sha256
            for file in (self.root / "work").rglob("*.json")
            for artifact in msgspec.json.decode(file.read_bytes(), type=Manifest).artifacts
        }
        blobs = [file for file in (self.root / "blobs").rglob("*") if file.is_file() and file.stem not in named]
        return sorted([*blobs, *(self.root / "tmp").iterdir()])

    def collect(self, older_than: float) -> int:
        """Remove files that no manifest names and that were last touched before an instant (seconds since 1970)."""
        self.sweep()
        gone = [file for file in self.orphans() if file.is_file() and file.stat().st_mtime < older_than]
        for file in gone:
            file.unlink(missing_ok=True)
        return len(gone)

    def _fetch_file(self, name: str, digest: str = "") -> bool:
        if self._remote is None:
            return False
        with self.workspace() as folder:
            draft = folder / "fetched"
            if not self._remote.get(name, draft):
                return False
            if digest and _digest(draft)[0] != digest:
                raise Permanent(Reason.ARTIFACT_CORRUPT, f"{self._remote.uri(name)} is not what its name says")
            target = self.root / name
            target.parent.mkdir(exist_ok=True)
            draft.rename(target)
        return True


def _digest(file: Path) -> tuple[str, int]:
    """The hash and size of a file, once it is durable on disk."""
    digest, size = hashlib.sha256(), 0
    with file.open("rb") as source:
        while piece := source.read(PIECE):
            digest.update(piece)
            size += len(piece)
        os.fsync(source.fileno())
    return digest.hexdigest(), size


def _is_abandoned(folder: Path) -> bool:
    try:
        lock = os.open(folder / "lock", os.O_RDWR)
    except FileNotFoundError:  # its owner is just making it, or just removing it
        return not any(folder.iterdir()) and folder.stat().st_mtime < folder.parent.stat().st_mtime - 60
    except NotADirectoryError:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True
