"""Turns a body and its `Content-Encoding` into at most 1 MiB of plain bytes, or the code of a refusal (F11)."""

import zlib
from io import BytesIO

import zstandard

from patra.attribution.contract.reasons import Reason

MAX_BODY_BYTES = 1024 * 1024
MAX_ENCODING_OVERHEAD_BYTES = 64 * 1024  # by which an encoding may make incompressible bytes longer
MAX_STREAM_MEMBERS = 1000
"""Members of a gzip stream, frames of a zstd stream: one that is cut finer was made to cost time."""
MAX_ZSTD_WINDOW_BYTES = 8 * 1024 * 1024  # what a zstd frame may ask us to remember; the default of level 19 and below


def inflate_body(body: bytes, encoding: str, limit: int = MAX_BODY_BYTES) -> bytes | Reason:
    """The plain bytes of a body, however much it would inflate to."""
    match encoding.strip().lower():
        case "" | "identity":
            plain: bytes | None = body
        case "gzip" | "x-gzip":
            plain = _gunzip_body(body, limit)
        case "zstd":
            plain = _unzstd(body, limit)
        case _:
            return Reason.ENCODING_UNSUPPORTED
    if plain is None:
        return Reason.ENCODING_MALFORMED
    return Reason.BODY_TOO_LARGE if len(plain) > limit else plain


def _gunzip_body(body: bytes, limit: int) -> bytes | None:
    """Every member of a gzip stream, one byte past the limit at most; None if it is none, or ends too early."""
    parts: list[bytes] = []
    size = 0
    for _ in range(MAX_STREAM_MEMBERS):
        member = zlib.decompressobj(wbits=31)
        try:
            parts.append(member.decompress(body, limit + 1 - size))
        except zlib.error:
            return None
        size += len(parts[-1])
        if size > limit:
            return b"".join(parts)
        if not member.eof:
            return None
        body = member.unused_data
        if not body:
            return b"".join(parts)
    return None


def _unzstd(body: bytes, limit: int) -> bytes | None:
    """Every frame of a zstd stream: read once within the bound, then once more to see that no frame ends too early."""
    reader = zstandard.ZstdDecompressor(max_window_size=MAX_ZSTD_WINDOW_BYTES).stream_reader(
        BytesIO(body), read_across_frames=True
    )
    try:
        plain = reader.read(limit + 1)
        if len(plain) > limit:
            return plain
        for _ in range(MAX_STREAM_MEMBERS):
            frame = zstandard.ZstdDecompressor(max_window_size=MAX_ZSTD_WINDOW_BYTES).decompressobj()
            frame.decompress(body)
            if not frame.eof:
                return None
            body = frame.unused_data
            if not body:
                return plain
    except zstandard.ZstdError:
        return None
    return None
