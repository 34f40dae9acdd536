"""A URL such as `s3://bucket/prefix` goes in; a place that keeps copies of artifacts comes out, through obstore
(B6).
"""

from datetime import timedelta
from pathlib import Path
from typing import Any

from patra.kernel.errors import ConfigInvalid, PatraError, Permanent, Transient
from patra.studio.reasons import R

RETRY = {"max_retries": 2, "retry_timeout": timedelta(seconds=30)}  # the job is tried again later anyway


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
        self._refusals = (obstore.exceptions.PermissionDeniedError, obstore.exceptions.UnauthenticatedError)
        given: dict[str, Any] = {"retry_config": RETRY} | options
        self._store: Any = from_url(url, **given)

    def put(self, name: str, source: Path) -> None:
        try:
            self._obstore.put(self._store, name, source)
        except Exception as error:
            raise self._said(error) from error

    def get(self, name: str, target: Path) -> bool:
        try:
            found = self._obstore.get(self._store, name)
            with target.open("wb") as file:
                for piece in found.stream(min_chunk_size=1 << 20):
                    file.write(piece)
        except FileNotFoundError:
            return False
        except Exception as error:
            raise self._said(error) from error
        return True

    def _said(self, error: Exception) -> PatraError:
        """The errors of obstore have no common base that says what may be tried again: all but a refusal may."""
        detail = f"object storage: {error}".partition("Debug source")[0].strip()[:500]
        if isinstance(error, self._refusals):
            return Permanent(R.SERVER_REFUSED, detail)
        return Transient(R.SERVER_UNAVAILABLE, detail)

    def uri(self, name: str) -> str:
        return f"{self._url}/{name}"
