"""Bytes go in, a compressed frame comes out; and back again."""

import threading

import zstandard

_LEVEL = 1


class _Compressors(threading.local):
    """One of each a thread: making them costs more than using them, and no two threads may share one."""

    def __init__(self) -> None:
        self.compress = zstandard.ZstdCompressor(level=_LEVEL).compress
        self.decompress = zstandard.ZstdDecompressor().decompress


_own = _Compressors()


def compressed(body: bytes) -> bytes:
    return _own.compress(body)


def decompressed(body: bytes) -> bytes:
    """What `compressed` made; the frame says how long it was."""
    return _own.decompress(body)
