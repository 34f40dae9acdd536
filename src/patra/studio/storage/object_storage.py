"""Copies of artifacts in object storage, by a URL such as `s3://bucket/prefix`, through obstore (B6)."""

from typing import Any

from patra.kernel import files
from patra.kernel.files import StorageCodes
from patra.studio.vocabulary.reasons import Reason

CODES = StorageCodes(missing=Reason.EXTRA_MISSING, refused=Reason.SERVER_REFUSED, unavailable=Reason.SERVER_UNAVAILABLE)


class ObjectStorage(files.ObjectStorage):
    """Artifacts under their names in a bucket; errors carry the codes of the studio."""

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, CODES, place="studio.artifacts_url", **options)
