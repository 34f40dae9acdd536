"""A PostgreSQL primary that falls silent (SIGSTOP) while its standby is promoted: intake resumes by itself, SIGTERM ends."""

import tempfile
from pathlib import Path

from tests.prove.chaos import failover, prove, silent_shutdown


def main() -> str:
    with tempfile.TemporaryDirectory(prefix="patra-silent-") as folder:
        return prove(Path(folder), (silent_shutdown, failover), postgres=True, services_too=False)
