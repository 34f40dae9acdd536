"""Turns encoded pieces of a body into decoded ones, never more than the bound: no answer can fill the memory."""

import zlib
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol


class TooLargeError(Exception):
    """The decoded body passes its bound."""


class Decoder(Protocol):
    def feed(self, data: bytes, room: int) -> bytes:
        """At most `room` bytes of output; raises TooLargeError where there is more, ValueError where it is garbage."""
        ...

    @property
    def complete(self) -> bool: ...


class Identity:
    complete = True

    def feed(self, data: bytes, room: int) -> bytes:
        if len(data) > room:
            raise TooLargeError
        return data


class Zlib:
    """gzip (several members too) and deflate, with and without its header."""

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._bits = 16 + zlib.MAX_WBITS if gzip else zlib.MAX_WBITS
        self._one = zlib.decompressobj(self._bits)
        self._fed = False

    @property
    def complete(self) -> bool:
        return self._one.eof or not self._fed

    def feed(self, data: bytes, room: int) -> bytes:
        out = bytearray()
        while data:
            if self._one.eof:
                if not self._gzip or not data.strip(b"\0"):
                    break  # padding after the end
                self._one = zlib.decompressobj(self._bits)
            out += self._some(data, room - len(out) + 1)
            if len(out) > room:
                raise TooLargeError
            data = self._one.unconsumed_tail or self._one.unused_data
        return bytes(out)

    def _some(self, data: bytes, most: int) -> bytes:
        first, self._fed = not self._fed, True
        try:
            return self._one.decompress(data, most)
        except zlib.error as error:
            if first and not self._gzip:  # some servers send deflate without the zlib header
                self._one = zlib.decompressobj(-zlib.MAX_WBITS)
                try:
                    return self._one.decompress(data, most)
                except zlib.error:
                    pass
            raise ValueError(str(error)) from error


class Brotli:
    """Only where the library can bound its output (brotli 1.2)."""

    def __init__(self) -> None:
        library: Any = import_module("brotli")
        self._one = library.Decompressor()
        self._error: type[Exception] = library.error
        self._fed = False

    @property
    def complete(self) -> bool:
        return bool(self._one.is_finished()) or not self._fed

    def feed(self, data: bytes, room: int) -> bytes:
        out = bytearray()
        self._fed = True
        while True:
            try:
                piece: bytes = self._one.process(data, output_buffer_limit=65_536)
            except self._error as error:
                raise ValueError(str(error)) from error
            out += piece
            if len(out) > room:
                raise TooLargeError
            data = b""
            if not piece or self._one.is_finished():
                return bytes(out)


@lru_cache(maxsize=1)
def brotli_there() -> bool:
    if find_spec("brotli") is None:
        return False
    return hasattr(import_module("brotli").Decompressor, "can_accept_more_data")


def accepted_encodings() -> str:
    """The value of `Accept-Encoding`."""
    return "gzip, deflate, br" if brotli_there() else "gzip, deflate"


def decoder(encoding: str) -> Decoder | None:
    """The decoder of a `Content-Encoding`, or None where we do not know it."""
    match encoding.strip().lower():
        case "" | "identity":
            return Identity()
        case "gzip" | "x-gzip":
            return Zlib(gzip=True)
        case "deflate":
            return Zlib(gzip=False)
        case "br" if brotli_there():
            return Brotli()
        case _:
            return None
