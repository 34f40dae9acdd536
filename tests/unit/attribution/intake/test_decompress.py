"""Bodies as they are sent: gzip, zstd and identity, bounded whatever they would inflate to (F11)."""

import gzip
import random
from collections.abc import Callable

import pytest
import zstandard

from patra.attribution.contract.reasons import Reason
from patra.attribution.intake.decompress import MAX_BODY_BYTES, MAX_STREAM_MEMBERS, inflate_body

Pack = Callable[[bytes], bytes]

PACKS: dict[str, Pack] = {
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}


@pytest.fixture(params=sorted(PACKS))
def encoding(request: pytest.FixtureRequest) -> str:
    return request.param


def text(size: int) -> bytes:
    return random.Random(size).randbytes(size // 2).hex().encode()


def test_a_stream_of_several_members_is_all_of_them(encoding: str):
    plain = text(200_000)
    parts = [plain[start : start + 30_011] for start in range(0, len(plain), 30_011)]
    assert inflate_body(b"".join(PACKS[encoding](part) for part in [b"", *parts, b""]), encoding) == plain


def test_a_stream_that_ends_too_early_is_malformed_wherever_it_is_cut(encoding: str):
    body = PACKS[encoding](text(600)) + PACKS[encoding](text(400))
    whole = len(PACKS[encoding](text(600)))
    for size in range(len(body)):
        assert size == whole or inflate_body(body[:size], encoding) is Reason.ENCODING_MALFORMED


def test_a_changed_byte_is_never_an_error_of_ours(encoding: str):
    plain = text(600)
    body = bytearray(PACKS[encoding](plain))
    for place in range(len(body)):
        changed = bytes(body[:place]) + bytes([body[place] ^ 0x55]) + bytes(body[place + 1 :])
        assert inflate_body(changed, encoding) in {plain, Reason.ENCODING_MALFORMED, Reason.BODY_TOO_LARGE}


def test_what_follows_the_stream_makes_it_malformed(encoding: str):
    assert inflate_body(PACKS[encoding](b"{}") + b"rubbish", encoding) is Reason.ENCODING_MALFORMED


def test_exactly_a_mebibyte_fits_and_one_byte_more_does_not(encoding: str):
    pack = PACKS[encoding]
    assert inflate_body(pack(b" " * MAX_BODY_BYTES), encoding) == b" " * MAX_BODY_BYTES
    assert inflate_body(pack(b" " * (MAX_BODY_BYTES + 1)), encoding) is Reason.BODY_TOO_LARGE
    assert inflate_body(pack(b" " * MAX_BODY_BYTES) + pack(b" "), encoding) is Reason.BODY_TOO_LARGE
    assert inflate_body(pack(b" " * 200 * MAX_BODY_BYTES), encoding) is Reason.BODY_TOO_LARGE


def test_a_stream_of_very_many_members_is_refused_instead_of_costing_seconds(encoding: str):
    member = PACKS[encoding](b"")
    assert inflate_body(member * MAX_STREAM_MEMBERS, encoding) == b""
    assert inflate_body(member * (MAX_STREAM_MEMBERS + 1), encoding) is Reason.ENCODING_MALFORMED


def test_a_zstd_frame_that_asks_for_a_huge_window_is_malformed():
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27, enable_ldm=True)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    body = stream.compress(b"{}") + stream.flush()
    assert inflate_body(body, "zstd") is Reason.ENCODING_MALFORMED


def test_encodings_are_known_by_their_names_alone():
    assert inflate_body(b"{}", "") == inflate_body(b"{}", " Identity ") == b"{}"
    for other in ("br", "deflate", "gzip, gzip", "gzip;q=1", "*"):
        assert inflate_body(b"{}", other) is Reason.ENCODING_UNSUPPORTED
