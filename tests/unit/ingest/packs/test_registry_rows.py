"""A pack goes into rows and comes out as it was (ruling I5)."""

import pytest

from patra.ingest.packs import bundled
from patra.ingest.packs.diff import Change, Kind, difference
from patra.ingest.packs.registry_rows import TABLES, dictionary_rows, rows_of, tree_of
from patra.kernel.canonical import fingerprint
from tests.unit.ingest.sample_packs import KINDS, changed, loaded, loaded_text

EMPTY = """pack: 1
source: x
version: "1"
title: X
credentials: {}
schedules: {}
defaults: {}
endpoints:
  a:
    params: {}
    response: {}
    output: {fields: {}}
    expr: {}
    operations: {BACKFILL: {}, HARVEST: {retry: {}}}
    errors: {}
"""


def back(pack):
    return tree_of(rows_of(pack.tree, pack_hash=pack.hash, version_no=1, created_at=1, now=2))


@pytest.mark.parametrize("name", KINDS)
def test_a_pack_survives_the_registry(name):
    pack = loaded(name)
    assert back(pack) == pack.tree
    assert list(back(pack)["endpoints"]) == list(pack.tree["endpoints"])


@pytest.mark.parametrize("name", bundled.names())
def test_a_pack_of_the_distribution_survives_the_registry(name):
    pack = bundled.pack(name)
    assert back(pack) == pack.tree  # a part that were lost would make each load a new version


def test_sections_that_say_nothing_survive_too():
    pack = loaded_text(EMPTY)
    assert back(pack) == pack.tree
    assert fingerprint(back(pack)) == pack.hash


def test_expressions_parameters_and_fields_have_tables_of_their_own():
    rows = rows_of(loaded("token").tree, pack_hash="h", version_no=1, created_at=1, now=1)
    assert set(rows) == set(TABLES)
    assert {row["field_name"] for row in rows["reg_expr_field_dict"] if row["field_kind"] == "OUTPUT"} == {
        "doi",
        "title",
        "issued",
        "authors",
    }
    assert [row["operation_code"] for row in rows["reg_prov_rate_limit_cfg"]] == ["", "BACKFILL"]
    assert rows["reg_prov_credential"][0]["cfg"] == '{"type":"API_KEY","secrets":{"apiKey":"env:TOKENLIKE_KEY"}}'


def test_the_dictionary_has_every_list_of_codes():
    rows = dictionary_rows()
    assert {"http_method", "ing_operation", "ing_cursor_type", "ing_namespace_scope"} <= {
        row["type_code"] for row in rows["sys_dict_type"]
    }
    assert all(row["item_name"] for row in rows["sys_dict_item"])


def test_a_difference_names_what_was_added_removed_and_changed():
    before = loaded("token").tree
    after = loaded_text(
        changed(
            "token",
            ("maxPageSize: 1000", "maxPageSize: 900"),
            ("      tokenTtl: PT5M\n", ""),
            ("rows: ${page.size}", "rows: ${page.size}\n        n: '1'"),
        )
    ).tree
    assert difference(before, after) == [
        Change(kind=Kind.ADDED, path="endpoints.works.http.queryTemplate.n", after="1"),
        Change(kind=Kind.REMOVED, path="endpoints.works.pagination.tokenTtl", before="PT5M"),
        Change(kind=Kind.CHANGED, path="endpoints.works.limits.maxPageSize", before=1000, after=900),
    ]
    assert difference(before, before) == []
    assert all(change.kind is Kind.ADDED for change in difference(None, after))
