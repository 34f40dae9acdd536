"""Every paragraph of the specification, every ruling and every code is shown by a test (`specification.txt` says which).

The specification itself is not part of this repository: where it lies beside it, the table is held to its outline, too.
"""

import ast
import re
from pathlib import Path

import pytest

from patra.attribution.contract.reasons import Reason
from tests.unit.attribution.contract.test_reasons import reached

ROOT = Path(__file__).parents[3]
TABLE = Path(__file__).with_name("specification.txt")
SPECIFICATION = ROOT.parent / "shared" / "spec" / "attribution.zh.md"
RULINGS = [*[f"A{n}" for n in range(1, 5)], *[f"F{n}" for n in range(1, 24)]]


def table() -> dict[str, dict[str, list[str]]]:
    """By paragraph (or `rulings`, or `codes`): its items and the names of the tests that show each."""
    found: dict[str, dict[str, list[str]]] = {}
    items: dict[str, list[str]] = {}
    names: list[str] = []
    for line in TABLE.read_text().splitlines():
        if line.startswith("§ "):
            items = found.setdefault(line[2:], {})
        elif line.startswith(" "):
            names += line.split()
        elif line and not line.startswith("#"):
            label, *first = line.split()
            names = list(first)
            items |= dict.fromkeys(_numbers(label), names)
    return found


def _numbers(label: str) -> list[str]:
    begin, _, end = label.partition("-")
    return [str(n) for n in range(int(begin), int(end or begin) + 1)] if begin.isdigit() else [label]


def written_tests() -> dict[str, str]:
    """Every test of attribution that pytest collects, with its text."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "tests").glob("*/attribution/**/test_*.py")):
        text = path.read_text()
        lines = text.splitlines()
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                begin = min([node.lineno, *[decorator.lineno for decorator in node.decorator_list]])
                found[node.name] = "\n".join(lines[begin - 1 : node.end_lineno])
    return found


def outline(text: str) -> dict[str, int]:
    """How many numbered items follow each heading of §3.8.2 to §3.8.30."""
    found: dict[str, int] = {}
    section = heading = ""
    for line in text.splitlines():
        if match := re.match(r"#### (3\.8\.\d+)", line):
            section = heading = match[1]
        elif re.match(r"\d+\. ", line):
            found[heading] = found.get(heading, 0) + 1
        elif line and not line.startswith((" ", "#")):
            heading = f"{section} {line.rstrip('：')}"
    return {name: count for name, count in found.items() if not name.startswith("3.8.1 ")}


def test_every_test_that_the_table_names_exists():
    tests = written_tests()
    named = {name for items in table().values() for names in items.values() for name in names}
    assert sorted(named - set(tests)) == []
    assert all(names for items in table().values() for names in items.values())


def test_every_section_has_its_items_without_a_gap():
    paragraphs = {name: list(items) for name, items in table().items() if name not in {"rulings", "codes"}}
    assert {name.split()[0] for name in paragraphs} == {f"3.8.{n}" for n in range(2, 31)}
    for name, items in paragraphs.items():
        assert items == [str(n + 1) for n in range(len(items))], name


@pytest.mark.skipif(not SPECIFICATION.exists(), reason="the specification does not lie beside the repository")
def test_the_table_has_the_outline_of_the_specification():
    paragraphs = {name: len(items) for name, items in table().items() if name not in {"rulings", "codes"}}
    assert paragraphs == outline(SPECIFICATION.read_text())


def test_every_ruling_is_shown_by_a_test():
    assert list(table()["rulings"]) == RULINGS


def test_every_code_is_reached_by_the_log_of_all_codes_or_by_the_test_that_the_table_names():
    tests = written_tests()
    named = table()["codes"]
    assert set(named) | reached() == {code.value for code in Reason}
    assert not set(named) & reached()
    for code, names in named.items():
        assert any(code in tests[name] or f"Reason.{Reason(code).name}" in tests[name] for name in names), code
