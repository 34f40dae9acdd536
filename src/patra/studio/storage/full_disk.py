"""Decides from an error whether the studio's folder was full. A full disk is waited for, and fails nothing."""

import errno

from patra.kernel.clock import SECOND
from patra.kernel.errors import PatraError

FULL_DISK_PAUSE = SECOND
"""How long a worker that met a full disk takes no job."""
_WORDS = "No space left on device"  # of ffmpeg, which ends with these words and a code of its own


def is_disk_full(error: BaseException | None) -> bool:
    """Whether an error, or one that it came from, says that there was no room."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return True
        if isinstance(error, PatraError) and _WORDS in error.detail:
            return True
        error = error.__cause__ or error.__context__
    return False
