"""Backups of PostgreSQL that were changed, or made by others, are found damaged whatever stands in them."""

import zipfile
from hashlib import sha256
from pathlib import Path

import msgspec
import zstandard

from patra.app.postgres_backup import CONTENTS, MAX_CONTENTS_BYTES, Contents, TableContent, verify

ROWS = b"1\ta\n2\tb\n"
TABLE = TableContent(name="krn_outbox", columns=["id", "body"], rows=2, sha256=sha256(ROWS).hexdigest())


def archive(file: Path, contents: bytes, compression: int = zipfile.ZIP_STORED) -> bytes:
    with zipfile.ZipFile(file, "w", compression) as made:
        made.writestr("krn_outbox.copy.zst", zstandard.compress(ROWS))
        made.writestr(CONTENTS, contents)
    return file.read_bytes()


def listed() -> bytes:
    return msgspec.json.encode(Contents(tables=[TABLE], sequences={}, migrations=[]))


def test_whichever_byte_is_changed_the_backup_is_read_to_its_end(tmp_path: Path) -> None:
    file = tmp_path / "copy"
    whole = archive(file, listed())
    assert verify(file).sound
    for place in range(2, len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        verify(file)  # says what it finds and raises nothing; the manifest's hash has the rest


def test_an_archive_that_would_unfold_without_bound_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "copy"
    archive(file, b"[" * (MAX_CONTENTS_BYTES + 1), zipfile.ZIP_DEFLATED)
    assert "not stored" in verify(file).damages[0].detail
    archive(file, b"[" * (MAX_CONTENTS_BYTES + 1))
    assert "bytes" in verify(file).damages[0].detail
