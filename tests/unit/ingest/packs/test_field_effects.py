"""Every field of the pack format has an effect that is seen when the field alone is changed (ruling I13)."""

import ast
import logging
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import structlog

from tests.unit.app.components import ingest_cases
from tests.unit.ingest.packs.effects.observe import built, put
from tests.unit.ingest.packs.effects.stand_in import loaded_tree
from tests.unit.ingest.packs.field_effects import CASES, TESTS, changed_fields, pack_fields, section_of

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    """Hundreds of small harvests: their log lines would cost more than they do."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


def test_every_field_has_a_case_or_a_test() -> None:
    fields = pack_fields()
    structs = {key.partition(".")[0] for key in fields}
    by_parts = {key for key, field in fields.items() if section_of(field) in structs}
    """A section has the effect of its fields, each of which has a case."""
    assert not CASES.keys() & TESTS.keys()
    assert CASES.keys() | TESTS.keys() | by_parts == fields.keys()


@pytest.mark.parametrize("key", CASES)
def test_the_field_alone_changes_what_is_observed(key: str) -> None:
    case = CASES[key]
    before, after = built(case.given), built(case.given)
    put(after, case.path, case.value)
    packs = loaded_tree(before).pack, loaded_tree(after).pack
    changed = set(changed_fields(*packs))
    assert changed == {key} or (changed and section_of(pack_fields()[key]) is not None), changed
    assert case.observe(before) != case.observe(after)


@pytest.mark.parametrize("key", TESTS)
def test_the_tests_that_are_named_are_there(key: str) -> None:
    file, _, name = TESTS[key].partition("::")
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


PAGE = ROOT / "docs" / "reference" / "pack-field-effects.md"


def page() -> str:
    """Every field of the format, and the case in which its effect is seen."""
    lines = [
        "# Effects of the fields of a pack",
        "",
        "Made from the cases that a test runs; do not edit. In each, the field alone is changed, and what is observed",
        "must change with it. A field without a case fails the test, and a field without an effect leaves the format.",
        "The same for the settings of ingest; each of its metrics is moved.",
        "",
        "| field | change | seen in |",
        "|---|---|---|",
    ]
    for key, field in sorted(pack_fields().items()):
        if key in CASES:
            case = CASES[key]
            value = msgspec.json.encode(case.value).decode().replace("|", "\\|")
            lines.append(
                f"| `{key}` | `{case.path.lstrip('/')}: {value}` | {case.effect[:1].lower()}{case.effect[1:]} |"
            )
        elif key in TESTS:
            lines.append(f"| `{key}` | | `{TESTS[key].partition('::')[2]}` |")
        else:
            lines.append(f"| `{key}` | | the fields of `{section_of(field)}` |")
    return "\n".join([*lines, *_settings(), *_metrics()]) + "\n"


def _settings() -> list[str]:
    lines = ["", "## Settings", "", "| setting | change | seen in |", "|---|---|---|"]
    for key in sorted(ingest_cases.CASES.keys() | ingest_cases.TESTS.keys()):
        if key in ingest_cases.CASES:
            one = ingest_cases.CASES[key]
            value = msgspec.json.encode(one.value).decode()
            lines.append(f"| `{key}` | `{value}` | {one.effect[:1].lower()}{one.effect[1:]} |")
        else:
            lines.append(f"| `{key}` | | `{ingest_cases.TESTS[key].partition('::')[2]}` |")
    return lines


def _metrics() -> list[str]:
    moved = dict.fromkeys(ingest_cases.METRICS, "a harvest with two answers of 429")
    moved |= dict.fromkeys(ingest_cases.GAUGES, "what executors say of a harvest")
    moved |= dict.fromkeys(ingest_cases.WATCHED, "what the watch says of a plan before and after its harvest")
    moved |= {name: f"`{where.partition('::')[2]}`" for name, (_, where) in ingest_cases.METRIC_TESTS.items()}
    return ["", "## Metrics", "", "| metric | moved by |", "|---|---|",
            *(f"| `{name}` | {moved[name]} |" for name in sorted(moved))]  # fmt: skip


def test_the_published_list_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `python -m tests.unit.ingest.packs.test_field_effects`"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
