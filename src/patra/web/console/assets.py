"""Static files of the console: read once, addressed by their hash, answered as immutable and compressed."""

import gzip
import mimetypes
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

import msgspec
from starlette.responses import Response

MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
IMMUTABLE = "public, max-age=31536000, immutable"
HASH_DIGITS = 12


class Asset(msgspec.Struct, frozen=True, kw_only=True):
    """One file under `static/`, as it is and compressed."""

    name: str
    digest: str
    media_type: str
    content: bytes
    compressed: bytes

    @property
    def url(self) -> str:
        return f"/console/static/{self.digest}/{self.name}"


@cache
def assets() -> dict[str, Asset]:
    """Every file that pages may refer to, by its name below `static/`."""
    found: dict[str, Asset] = {}
    _collect(files("patra.web.console") / "static", "", found)
    return found


def asset_url(name: str) -> str:
    return assets()[name].url


def asset_response(path: str, accepts: str) -> Response | None:
    """The answer for what follows `/console/static/`; None where there is no such file of this hash."""
    digest, _, name = path.partition("/")
    asset = assets().get(name)
    if asset is None or asset.digest != digest:
        return None
    headers = {"Cache-Control": IMMUTABLE, "X-Content-Type-Options": "nosniff", "Vary": "Accept-Encoding"}
    if "gzip" in accepts:
        return Response(asset.compressed, 200, headers | {"Content-Encoding": "gzip"}, asset.media_type)
    return Response(asset.content, 200, headers, asset.media_type)


def _collect(folder: Traversable, prefix: str, found: dict[str, Asset]) -> None:
    for entry in folder.iterdir():
        name = prefix + entry.name
        if entry.is_dir():
            _collect(entry, f"{name}/", found)
        elif not name.endswith((".toml", ".py", ".pyc")):
            content = entry.read_bytes()
            suffix = name[name.rfind(".") :]
            found[name] = Asset(
                name=name,
                digest=sha256(content).hexdigest()[:HASH_DIGITS],
                media_type=MEDIA_TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream",
                content=content,
                compressed=gzip.compress(content, 9, mtime=0),
            )
