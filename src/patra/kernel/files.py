"""Files that outlive the machine: bytes go in, and are there whole under their name, or not at all."""

import os
from pathlib import Path

from patra.kernel.ids import new_id


def sync(path: Path) -> None:
    """Wait until a file is on the disk, or the names in a folder are."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, data: bytes) -> None:
    """Put a file into its folder, durably; several may write the same one at once, and the last counts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{new_id()}")
    try:
        part.write_bytes(data)
        sync(part)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync(path.parent)  # its name too must outlive the machine
