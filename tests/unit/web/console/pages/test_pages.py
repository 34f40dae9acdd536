"""Pages ask the HTTP interface: what the console shows, `curl` can ask for."""

import re
from pathlib import Path

from patra.web.console import pages

EXCEPT = {
    "studio.py": "shots and notes of a film",
    "operations.py": "the names of engines and of vendored files",
    "overview.py": "readiness and loops of this process",
}


def test_no_page_reads_the_store_itself() -> None:
    folder = Path(pages.__file__).parent
    found = {path.name for path in folder.glob("*.py") if re.search(r"view\.patra\b", path.read_text("utf-8"))}
    assert found <= set(EXCEPT)
    assert not [path.name for path in folder.glob("*.py") if ".db.read" in path.read_text("utf-8")]
