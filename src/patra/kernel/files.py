"""Writes files durably: a file is there whole under its name, or not at all.

In a folder, or in object storage by a URL such as `s3://bucket/prefix`, through obstore (the extra `s3`). Credentials
and endpoint of the latter come from the service's own variables (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT`, …);
`file:///folder` is a folder of this machine.
"""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import msgspec

from patra.kernel.errors import ConfigInvalid, Invalid, PatraError, Permanent, Transient
from patra.kernel.ids import new_id

RETRY = {"max_retries": 2, "retry_timeout": timedelta(seconds=30)}  # who calls tries again later anyway
CHUNK_BYTES = 1 << 20
MAX_DETAIL = 500


def sync(path: Path) -> None:
    """Wait until a file is on the disk, or the names in a folder are."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, data: bytes) -> None:
    """Put a file into its folder, durably; several may write the same one at once, and the last counts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{new_id()}")
    try:
        part.write_bytes(data)
        sync(part)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync(path.parent)  # its name too must outlive the machine


class StorageCodes(msgspec.Struct, frozen=True, kw_only=True):
    """The codes under which an engine tells what went wrong with its storage."""

    missing: str
    """obstore is not installed."""
    refused: str
    unavailable: str
    damaged: str = ""
    """A file of a folder is there and cannot be read."""


class ObjectStorage:
    """Files under their names in a bucket. A put is whole or not there: the service promises that."""

    def __init__(self, url: str, codes: StorageCodes, *, place: str, **options: Any) -> None:
        """`place`: the setting that names the URL. Raises ConfigInvalid without the extra, or for a URL of no kind."""
        try:
            import obstore  # noqa: PLC0415  an extra
            from obstore.store import from_url  # noqa: PLC0415
        except ImportError as error:
            raise ConfigInvalid(
                codes.missing, "object storage needs obstore", place=place, advice="pip install 'patra[s3]'"
            ) from error
        self.url = url.rstrip("/")
        self._codes = codes
        self._obstore: Any = obstore
        self._refusals = (obstore.exceptions.PermissionDeniedError, obstore.exceptions.UnauthenticatedError)
        given: dict[str, Any] = {"retry_config": RETRY} | options
        try:
            self._store: Any = from_url(url, **given)
        except Exception as error:  # obstore has no common base: an unknown kind, no bucket, a setting of the service
            why = str(error).partition("Debug source")[0].strip().replace(url, "…") if url else "it is empty"
            raise ConfigInvalid(
                "config_wrong_value",
                f"object storage cannot be opened by this URL: {why}"[:MAX_DETAIL],
                place=place,
                advice="name a bucket of a known kind, such as s3://bucket/folder, and set its variables",
            ) from error

    def put(self, name: str, content: bytes | Path) -> None:
        try:
            self._obstore.put(self._store, name, content)
        except Exception as error:
            raise self._storage_error(error) from error

    def get(self, name: str, target: Path) -> bool:
        """Copy a file to `target`; False where there is none of that name."""
        try:
            found = self._obstore.get(self._store, name)
            with target.open("wb") as file:
                for piece in found.stream(min_chunk_size=CHUNK_BYTES):
                    file.write(piece)
        except FileNotFoundError:
            return False
        except Exception as error:
            raise self._storage_error(error) from error
        return True

    def read(self, name: str) -> bytes | None:
        """A small file; None where there is none of that name."""
        try:
            return bytes(self._obstore.get(self._store, name).bytes())
        except FileNotFoundError:
            return None
        except Exception as error:
            raise self._storage_error(error) from error

    def names(self) -> list[str]:
        """Every file there, in order."""
        try:
            return sorted(meta["path"] for batch in self._obstore.list(self._store) for meta in batch)
        except Exception as error:
            raise self._storage_error(error) from error

    def uri(self, name: str) -> str:
        return f"{self.url}/{name}"

    def _storage_error(self, error: Exception) -> PatraError:
        """The errors of obstore have no common base that says what may be tried again: all but a refusal may."""
        detail = f"object storage: {error}".partition("Debug source")[0].strip()[:MAX_DETAIL]
        if isinstance(error, self._refusals):
            return Permanent(self._codes.refused, detail)
        return Transient(self._codes.unavailable, detail)


class FilePlace(Protocol):
    """Files by name. What `put` has returned from outlives this machine's process, and the same again is no harm."""

    @property
    def name(self) -> str: ...

    def put(self, name: str, content: bytes) -> None: ...

    def read(self, name: str) -> bytes | None: ...

    def names(self) -> list[str]: ...


class FolderPlace:
    """A folder; it is made when the first file is put there."""

    def __init__(self, folder: Path, codes: StorageCodes) -> None:
        self._folder = folder
        self._codes = codes

    @property
    def name(self) -> str:
        return str(self._folder)

    def put(self, name: str, content: bytes) -> None:
        write_whole(self._folder / name, content)

    def read(self, name: str) -> bytes | None:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Invalid(self._codes.damaged, f"{name} cannot be read: {error}") from error

    def names(self) -> list[str]:
        return sorted(path.name for path in self._folder.glob("*") if not path.name.startswith("."))


class BucketPlace:
    """Object storage; raises Transient where it is away, Permanent where it refuses."""

    def __init__(self, url: str, codes: StorageCodes, *, setting: str) -> None:
        self._storage = ObjectStorage(url, codes, place=setting)

    @property
    def name(self) -> str:
        return self._storage.url

    def put(self, name: str, content: bytes) -> None:
        self._storage.put(name, content)

    def read(self, name: str) -> bytes | None:
        return self._storage.read(name)

    def names(self) -> list[str]:
        return self._storage.names()


def file_place(folder: str, url: str, codes: StorageCodes, *, setting: str) -> FilePlace | None:
    """The place that a folder or, before it, a URL names; None where neither does. `setting`: what names the URL."""
    if url.startswith("file://"):  # through the folder: obstore does not wait for the disk
        return FolderPlace(_folder_of(url, setting), codes)
    if url:
        return BucketPlace(url, codes, setting=setting)
    return FolderPlace(Path(folder), codes) if folder else None


def _folder_of(url: str, setting: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc not in {"", "localhost"} or not parts.path.startswith("/"):
        raise ConfigInvalid(
            "config_wrong_value",
            "a file URL names a folder of this machine",
            place=setting,
            advice=f"write file:///folder with three slashes, or set {setting.removesuffix('_url')}_folder",
        )
    return Path(unquote(parts.path))
