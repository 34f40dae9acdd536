"""The table of evidence: each code has a share and words, and something rests on it."""

from pathlib import Path

import patra.studio.script.certainty as package
from patra.studio.script.certainty.evidence import EVIDENCE


def test_each_share_is_one_and_each_code_is_given_somewhere() -> None:
    code = "".join(
        path.read_text("utf-8") for path in Path(package.__path__[0]).glob("*.py") if path.stem != "evidence"
    )
    assert [name for name in EVIDENCE if f'"{name}"' not in code] == []
    assert all(0 < share < 1 and words for share, words in EVIDENCE.values())
