"""No field of the format is undocumented, and the published pages are what the types say."""

import re
from pathlib import Path

import msgspec
import pytest

from patra.ingest import reference
from patra.ingest.packs.checks import BUILT_IN
from patra.ingest.packs.schema import Pack
from patra.ingest.packs.spec import Spec
from patra.ingest.planning.slicing.slice_spec import SliceSpec
from patra.ingest.planning.states import PLAN, SLICE, TASK
from patra.ingest.vocabulary.reasons import Reason
from tests.unit.ingest.sample_packs import KINDS, loaded

DOCS = Path(__file__).parents[3] / "docs" / "reference"
PAGES = {
    "pack.md": reference.pack_page,
    "pack-expressions.md": reference.expression_page,
    "ingest-planning.md": reference.planning_page,
    "pack.schema.json": lambda: (
        msgspec.json.format(msgspec.json.encode(reference.pack_schema()), indent=2).decode() + "\n"
    ),
}


@pytest.mark.parametrize("root", [Pack, Spec, SliceSpec])
def test_every_field_has_a_text_and_every_pack_field_an_example(root):
    for name, text, fields in reference.struct_docs(root):
        assert text, f"{name} has no docstring"
        for field in fields:
            assert field.text, f"{name}.{field.name} is not described"
            if root is Pack:
                assert field.example or field.type.startswith("["), f"{name}.{field.name} has no example"


@pytest.mark.parametrize("page", PAGES)
def test_the_published_pages_are_up_to_date(page):
    wanted = PAGES[page]()
    path = DOCS / page
    assert path.read_text("utf-8") == wanted, f"run `python -m tests.unit.ingest.test_reference` to write {page} again"


def test_the_schema_takes_the_packs_that_we_read():
    from jsonschema_rs import validator_for

    judge = validator_for(reference.pack_schema())
    for name in KINDS:
        judge.validate(loaded(name).tree)
    assert not judge.is_valid({**loaded("page").tree, "bogus": 1})


def test_the_examples_of_the_format_are_of_their_type():
    schema = reference.pack_schema()
    assert schema["$defs"]["Pagination"]["properties"]["pageSize"]["examples"] == [100]
    assert "description" in schema["$defs"]["Retry"]["properties"]["maxAttempts"]


MIGRATIONS = Path(reference.__file__).parent / "sql" / "migrations"


@pytest.mark.parametrize(("machine", "table"), [(PLAN, "ing_plan"), (SLICE, "ing_plan_slice"), (TASK, "ing_task")])
def test_the_columns_check_repeats_the_machines_states(machine, table):
    text = "".join(path.read_text("utf-8") for path in sorted(MIGRATIONS.glob("*.sql")))
    body = re.search(rf"CREATE TABLE {table} \((.*?)\n\);", text, re.DOTALL)[1]
    check = re.search(r"status_code TEXT NOT NULL\s+CHECK \((.*?)\)", body, re.DOTALL)[1]
    assert set(re.findall(r"status_code = '(\w+)'", check)) == {state.value for state in machine.states}


def test_the_dictionary_holds_what_the_tables_check():
    text = (MIGRATIONS / "0003_state.sql").read_text("utf-8")
    for code in BUILT_IN["ing_namespace_scope"] | BUILT_IN["ing_cursor_type"]:
        assert f"'{code}'" in text


def test_every_reason_is_given_somewhere():
    folder = Path(reference.__file__).parent
    text = "".join(file.read_text("utf-8") for file in folder.rglob("*.py") if file.name != "reasons.py")
    assert not [reason.name for reason in Reason if not re.search(rf"\bReason\.{reason.name}\b", text)]


if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), "utf-8")
