"""Packs in the store: one transaction, versions, hashes, what was loaded is what is read (ruling I5)."""

import pytest

from patra.ingest.packs import registry
from patra.ingest.packs.checks import BUILT_IN
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.db import Database, migrate
from tests.contract.ingest.site import PACKAGES, Site
from tests.support.faults import FaultyDatabase, InjectedFault
from tests.unit.ingest.sample_packs import KINDS, changed, loaded, text_of


@pytest.fixture
def site(database: Database) -> Site:
    return Site(database, scheduled=True)


def test_what_is_loaded_is_what_is_read(site):
    for name in KINDS:
        pack = loaded(name)
        found = site.db.read(lambda tx, source=pack.pack.source: registry.read_pack(tx, source))
        assert (found.tree, found.hash, found.pack) == (pack.tree, pack.hash, pack.pack)
        assert found.source.marks == pack.source.marks


def test_loading_the_same_pack_again_changes_nothing(site):
    before = site.count("reg_pack")
    (again,) = site.load_text(text_of("token"))
    assert (again.changes, again.version_no) == ((), 1)
    assert site.count("reg_pack") == before


def test_a_changed_pack_is_a_new_version_and_says_what_changed(site):
    (second,) = site.load_text(changed("token", ("maxPageSize: 1000", "maxPageSize: 1500")))
    assert [(c.path, c.before, c.after) for c in second.changes] == [("endpoints.works.limits.maxPageSize", 1000, 1500)]
    assert (second.version_no, second.first) == (2, False)
    (third,) = site.load_text(text_of("token"))
    assert third.version_no == 3
    versions = site.db.read(lambda tx: registry.versions(tx, "tokenlike"))
    assert [v.version_no for v in versions] == [1, 2, 3]
    assert versions[0].pack_hash == versions[2].pack_hash != versions[1].pack_hash
    assert site.db.read(lambda tx: registry.version_tree(tx, "tokenlike", 2))["endpoints"]["works"]["limits"] == {
        "maxPageSize": 1500
    }


def test_what_a_pack_no_longer_has_is_gone(site):
    site.load_text(
        changed("page", ('schedules:\n  hourly: {endpoint: articles, operation: HARVEST, cron: "5 * * * *"}\n', ""))
    )
    assert site.count("reg_prov_schedule", "provenance_code = 'pagelike'") == 0


def test_no_secret_is_in_the_store_only_its_reference(site):
    rows = site.rows("SELECT cfg FROM reg_prov_credential")
    assert all("env:" in cfg for (cfg,) in rows)


def test_a_fault_at_any_statement_leaves_the_old_registry_or_the_new(database: Database):
    migrate(database, PACKAGES)
    old, new = loaded("token"), loaded("token")
    new.tree["endpoints"]["works"]["limits"] = {"maxPageSize": 1500}
    database.run(lambda tx: registry.load(tx, [old], by="t", now=1))
    counting = FaultyDatabase(database)
    counting.run(lambda tx: registry.load(tx, [old], by="t", now=2))
    clean = database.read(lambda tx: registry.read_tree(tx, "tokenlike"))
    for step in range(1, 80):
        faulty = FaultyDatabase(database, step)
        try:
            faulty.run(lambda tx: registry.load(tx, [new], by="t", now=3))
        except InjectedFault:
            found = database.read(lambda tx: registry.read_tree(tx, "tokenlike"))
            assert found in (clean, new.tree)
            if found == new.tree:
                break
            continue
        break
    assert database.read(lambda tx: registry.read_tree(tx, "tokenlike")) == new.tree


def test_the_dictionary_is_seeded_and_keeps_what_an_operator_disabled(site):
    assert site.db.read(registry.dictionary) == BUILT_IN
    site.run("UPDATE sys_dict_item SET enabled = 0 WHERE type_code = 'reg_pagination_type' AND item_code = 'TOKEN'")
    site.load("page")
    assert "TOKEN" not in site.db.read(registry.dictionary)["reg_pagination_type"]
    made = site.trigger("tokenlike", "works")
    assert (made.outcome, made.plan_id) == (Reason.COMPILE_FAILED, None)
    assert site.trigger("pagelike", "articles").outcome is Reason.PLANNED


def test_a_store_that_an_earlier_release_seeded_plans_before_any_pack_is_loaded_again(site):
    for table in ("sys_dict_item", "sys_dict_type"):
        site.run(f"DELETE FROM {table} WHERE type_code IN ('reg_verify', 'reg_short_page')")  # newer than the store
    assert site.db.read(registry.dictionary) == BUILT_IN
    assert site.trigger("pagelike", "articles").outcome is Reason.PLANNED


def test_a_code_that_is_turned_off_before_the_store_has_it_is_off(site):
    site.run("DELETE FROM sys_dict_item WHERE item_code = 'OFFSET'")
    before = site.db.read(lambda tx: registry.stamp(tx, "pagelike"))
    site.run(
        "INSERT INTO sys_dict_item (type_code, item_code, item_name, display_order, enabled) "
        "VALUES ('reg_pagination_type', 'OFFSET', 'off', 0, 0)"
    )
    assert "OFFSET" not in site.db.read(registry.dictionary)["reg_pagination_type"]
    assert site.db.read(lambda tx: registry.stamp(tx, "pagelike")) != before, "what was compiled before does not hold"


def test_the_sources_are_listed(site):
    found = {row["provenance_code"]: row for row in site.db.read(registry.sources)}
    assert set(found) == {loaded(name).pack.source for name in KINDS}
    assert (found["tokenlike"]["endpoints"], found["pagelike"]["schedules"]) == (2, 1)


def test_the_schedules_of_a_source_are_counted_that_are_on(site):
    def counted():
        return {row["provenance_code"]: row["schedules"] for row in site.db.read(registry.sources)}

    before = counted()
    for number, source in enumerate(("pagelike", "pagelike", "tokenlike")):
        site.run(
            "INSERT INTO ing_schedule "
            "(job_id, provenance_code, schedule_name, cfg, then_cfg, topic, created_by, created_at)"
            f" VALUES ('{source}/own{number}', '{source}', 'own{number}', '{{}}', '', '', 'me', 1)"
        )
    assert (counted()["pagelike"], counted()["tokenlike"]) == (before["pagelike"] + 2, before["tokenlike"] + 1)
    site.run(
        "INSERT INTO ing_schedule_switch (job_id, enabled, switched_by, switched_at) VALUES ('pagelike/own0', 0, '', 1)"
    )
    assert counted()["pagelike"] == before["pagelike"] + 1


def test_before_anything_is_loaded_the_built_in_dictionary_holds(database: Database):
    migrate(database, PACKAGES)
    assert database.read(registry.dictionary) == BUILT_IN
    assert Site(database, migrated=True).trigger("nope", "x", Operation.HARVEST).outcome is Reason.COMPILE_FAILED
