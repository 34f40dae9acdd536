"""Turns bytes into a compressed frame; and back again."""

import threading

import zstandard

from patra.kernel.errors import StoreCorrupt

_LEVEL = 1


class _Compressors(threading.local):
    """One of each a thread: making them costs more than using them, and no two threads may share one."""

    def __init__(self) -> None:
        self.compress = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress
        self.decompress = zstandard.ZstdDecompressor().decompress


_own = _Compressors()


def compress_body(body: bytes) -> bytes:
    return _own.compress(body)


def decompress_body(body: bytes) -> bytes:
    """What `compressed` made; the frame says how long it was, and its checksum that no byte of it was changed."""
    try:
        return _own.decompress(body)
    except zstandard.ZstdError as error:
        detail = f"compressed bytes were changed since they were written ({error}); `patra verify` says where"
        raise StoreCorrupt("store_corrupt", detail) from error
