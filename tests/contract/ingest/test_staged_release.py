"""A new version of a pack for a share of the plans: compared, then promoted or taken back (ch. 3.5)."""

import json
from pathlib import Path

import pytest

from patra.ingest.packs import staged_release
from patra.ingest.packs.spec import decode_spec
from patra.kernel.clock import DAY
from patra.kernel.db import Database
from patra.kernel.errors import Invalid, Permanent
from tests.contract.ingest import test_commands
from tests.contract.ingest.site import Site
from tests.unit.ingest.sample_packs import changed, loaded, loaded_text

patra = test_commands.patra


def sizes(site: Site, days: int) -> list[int | None]:
    """The page sizes of plans that are made on so many days."""
    found: list[int | None] = []
    for _ in range(days):
        site.clock.advance(DAY)
        made = site.trigger("tokenlike", "works")
        found.append(decode_spec(site.plan(made.plan_id or "").expr_proto_snapshot).pagination.page_size)
    return found


def test_a_share_of_the_plans_is_made_from_the_version_on_trial_until_it_is_promoted(database: Database) -> None:
    site = Site(database)
    newer = loaded_text(changed("token", ("pageSize: 1000", "pageSize: 500")))
    site.db.run(lambda tx: staged_release.stage(tx, newer, 40, by="me", now=site.clock.now()))
    tried = sizes(site, 20)
    assert {1000, 500} == set(tried)
    assert 3 <= tried.count(500) <= 14
    force, trial = site.db.read(lambda tx: staged_release.compare(tx, "tokenlike"))
    assert (force.role, force.plans) == ("in force", tried.count(1000))
    assert (trial.role, trial.plans, trial.failed) == ("on trial", tried.count(500), 0)
    site.run("UPDATE ing_task SET status_code = 'FAILED' WHERE plan_id IN (SELECT max(plan_id) FROM ing_plan)")
    after = site.db.read(lambda tx: staged_release.compare(tx, "tokenlike"))
    assert sum(one.failed for one in after) == 1
    site.db.run(lambda tx: staged_release.promote(tx, "tokenlike", by="me", now=site.clock.now()))
    assert set(sizes(site, 5)) == {500}


def test_a_trial_that_is_taken_back_leaves_the_version_in_force(database: Database) -> None:
    site = Site(database)
    newer = loaded_text(changed("token", ("pageSize: 1000", "pageSize: 500")))
    site.db.run(lambda tx: staged_release.stage(tx, newer, 100, by="me", now=site.clock.now()))
    assert set(sizes(site, 2)) == {500}
    site.db.run(lambda tx: staged_release.roll_back(tx, "tokenlike"))
    assert set(sizes(site, 3)) == {1000}
    with pytest.raises(Invalid, match="no version of tokenlike is on trial"):
        site.db.run(lambda tx: staged_release.promote(tx, "tokenlike", by="me", now=0))
    stranger = loaded_text(changed("token", ("source: tokenlike", "source: nobody")))
    with pytest.raises(Invalid, match="no version of nobody is loaded"):
        site.db.run(lambda tx: staged_release.stage(tx, stranger, 10, by="me", now=0))


def test_a_trial_that_nobody_can_read_is_a_broken_registry(database: Database) -> None:
    """Planning catches that for its source, and goes on with the others."""
    site = Site(database)
    site.db.run(lambda tx: staged_release.stage(tx, loaded("token"), 100, by="me", now=site.clock.now()))
    site.run("UPDATE reg_pack SET document = '{\"source\": 1}' WHERE version_no = 2")
    with pytest.raises(Permanent, match="the registry of tokenlike cannot be read"):
        site.trigger("tokenlike", "works")


def test_from_the_command_line(patra: test_commands.Command, tmp_path: Path) -> None:
    patra("pack", "load", test_commands.pack(tmp_path, "token"))
    newer = test_commands.pack(tmp_path, "token", ("pageSize: 1000", "pageSize: 500"))
    assert "a new version of tokenlike is staged" in patra("pack", "stage", newer, "--share", "100")
    rows = json.loads(patra("pack", "trial", "tokenlike", "--json"))
    assert [(row["role"], row["version_no"], row["plans"]) for row in rows] == [("in force", 1, 0), ("on trial", 2, 0)]
    assert "pageSize: 1000" in patra("pack", "show", "tokenlike")
    promoted = patra("pack", "promote", "tokenlike")
    assert "on trial no plan was made from it, so nothing has shown yet that it works" in promoted
    assert "pageSize: 500" in patra("pack", "show", "tokenlike")
    assert "i_not_staged" in patra("pack", "rollback", "tokenlike", code=5)
