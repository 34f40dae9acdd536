"""Each rule of the contracts (C§1 to C§6, B1 to B5) has tests named after it; `bus-promises.md` in the docs lists them."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[2]
PAGE = TESTS.parent / "docs" / "explanation" / "bus-promises.md"
RULES = [f"c{n}" for n in range(1, 7)] + [f"b{n}" for n in range(1, 6)]


def named() -> set[str]:
    texts = [file.read_text("utf-8") for kind in ("unit", "contract") for file in (TESTS / kind / "bus").rglob("*.py")]
    return set(re.findall(r"def (test_\w+)", "\n".join(texts)))


def test_each_rule_has_tests_named_after_it():
    assert [rule for rule in RULES if not any(name.startswith(f"test_{rule}_") for name in named())] == []


def test_the_page_names_tests_that_exist():
    listed = set(re.findall(r"`(test_\w+)`", PAGE.read_text("utf-8")))
    assert len(listed) > len(RULES)
    assert listed <= named()
