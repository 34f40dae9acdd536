"""Joins works that are the same, page by page, in bounded memory.

The works lie in a file beside the target, each read again once. Their identifiers are spread over files by hash, so
that all works with one identifier meet in one small file; there they are united, the smallest number leading. What
stays in memory is seventeen bytes a work. `works_merge.grouped` is the same rule for works that fit into memory; a test
holds one to the other.
"""

import os
import shutil
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from struct import Struct

import msgspec

from patra.ingest.packs.work import Work
from patra.ingest.works.merge import PRECEDENCE, Merged, keys_of, merge_works

PAGE_WORKS = 1_000
PARTS = 256
PART_BYTES = 16 * 1024
READ_BYTES = 4 * 1024 * 1024
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Work).decode
_met = Struct("<16sI")
"""An identifier, hashed, and the number of a work that has it."""


def join_works(
    pages: Iterable[Sequence[Work]], folder: Path, precedence: Sequence[str] = PRECEDENCE
) -> Iterator[list[Merged]]:
    """The works, joined; `folder` is where the working files may grow."""
    scratch = Path(tempfile.mkdtemp(prefix=".patra-join-", dir=folder))
    try:
        places = _gather(pages, scratch)
        following = _unite_groups(scratch, len(places) - 1)
        with (scratch / "works").open("rb", buffering=0) as works:
            yield from _merge_groups(works.fileno(), places, following, precedence)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _gather(pages: Iterable[Sequence[Work]], scratch: Path) -> "array[int]":
    """Write the works and their identifiers down; gives where each work begins, and where the last one ends."""
    places = array("Q", [0])
    parts = [bytearray() for _ in range(PARTS)]
    end = 0
    with (scratch / "works").open("wb", buffering=READ_BYTES) as out:
        for page in pages:
            for work in page:
                number = len(places) - 1
                for key in keys_of(work):
                    digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()
                    part = parts[digest[0]]
                    part += _met.pack(digest, number)
                    if len(part) >= PART_BYTES:
                        _flush(scratch, digest[0], part)
                body = _encode(work)
                out.write(body)
                end += len(body)
                places.append(end)
    for name, part in enumerate(parts):
        _flush(scratch, name, part)
    return places


def _flush(scratch: Path, name: int, part: bytearray) -> None:
    if part:
        with (scratch / f"keys-{name}").open("ab") as out:
            out.write(part)
        part.clear()


def _unite_groups(scratch: Path, count: int) -> "array[int]":
    """For each work the next one of its group in their order, or 0; a work that follows another is marked in itself."""
    leader = array("I", range(count))

    def lead(number: int) -> int:
        while leader[number] != number:
            leader[number] = leader[leader[number]]
            number = leader[number]
        return number

    for name in range(PARTS):
        file = scratch / f"keys-{name}"
        if not file.exists():
            continue
        first: dict[bytes, int] = {}
        for digest, number in _met.iter_unpack(file.read_bytes()):
            other = first.setdefault(digest, number)
            if other != number:
                one, two = lead(other), lead(number)
                leader[max(one, two)] = min(one, two)
        file.unlink()
    following = array("I", bytes(4 * count))
    for number in range(count - 1, 0, -1):
        if (head := lead(number)) != number:
            following[number] = following[head] or number  # the last one points to itself
            following[head] = number
    return following


def _merge_groups(
    works: int, places: "array[int]", following: "array[int]", precedence: Sequence[str]
) -> Iterator[list[Merged]]:
    """Groups in the order of their first work."""

    def work(number: int) -> Work:
        return _decode(os.pread(works, places[number + 1] - places[number], places[number]))

    page: list[Merged] = []
    done = bytearray(len(following))
    for number in range(len(following)):
        if done[number]:
            continue
        group = [work(number)]
        at = number
        while (then := following[at]) not in (0, at):
            group.append(work(then))
            done[then] = 1
            at = then
        page.append(merge_works(group, precedence))
        if len(page) >= PAGE_WORKS:
            yield page
            page = []
    if page:
        yield page
