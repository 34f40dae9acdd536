"""A URL such as `s3://bucket/prefix` goes in; a place that keeps copies of artifacts comes out, through obstore
(B6).
"""

from pathlib import Path
from typing import Any

from patra.kernel.errors import ConfigInvalid, Transient
from patra.studio.reasons import R


class ObjectStorage:
    """Files under their names in a bucket. A put is whole or not there: the service promises that."""

    def __init__(self, url: str, **options: Any) -> None:
        try:
            import obstore  # noqa: PLC0415  an extra
            from obstore.store import from_url  # noqa: PLC0415
        except ImportError as error:
            raise ConfigInvalid(
                R.EXTRA_MISSING,
                "object storage needs obstore",
                place="studio.artifacts_url",
                advice="pip install 'patra[s3]'",
            ) from error
        self._url = url.rstrip("/")
        self._obstore: Any = obstore
        self._store: Any = from_url(url, **options)

    def put(self, name: str, source: Path) -> None:
        try:
            self._obstore.put(self._store, name, source)
        except Exception as error:  # obstore's errors have no common base that says what may be tried again
            raise Transient(R.SERVER_UNAVAILABLE, f"object storage: {error}"[:500]) from error

    def get(self, name: str, target: Path) -> bool:
        try:
            found = self._obstore.get(self._store, name)
        except FileNotFoundError:
            return False
        except Exception as error:
            raise Transient(R.SERVER_UNAVAILABLE, f"object storage: {error}"[:500]) from error
        with target.open("wb") as file:
            for piece in found.stream(min_chunk_size=1 << 20):
                file.write(piece)
        return True

    def uri(self, name: str) -> str:
        return f"{self._url}/{name}"
