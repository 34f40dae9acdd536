"""What a module of another tenant says of a run changes nothing in it."""

from patra.studio.storage import store
from patra.studio.views import recent
from patra.studio.vocabulary.contracts import Context, OutgoingEvent, plan_id_of, publish
from tests.contract.studio.conftest import Site

OTHER = Context(tenant_id="other", project_id="p", trace_id="0" * 32, correlation_id="c")


def said(site: Site, by: str, kind: str, key: str, **payload: object) -> None:
    event = OutgoingEvent(type=kind, key=key, payload=payload)
    site.db.run(lambda tx: publish(site.studio.bus, tx, OTHER, [event], by=by))


def test_events_of_another_tenant_move_neither_the_run_nor_its_jobs(each_site: Site) -> None:
    run_id = each_site.submit()
    other_run = each_site.submit("Another\n\nThe sea was calm.")
    each_site.queued()
    assert each_site.stage(run_id) == "executing"

    def jobs() -> list[tuple[str, str]]:
        plan_id = plan_id_of(run_id, 1)
        return each_site.db.read(lambda tx: [(one.job_id, one.state) for one in store.jobs(tx, run_id, plan_id)])

    before = jobs()
    (job_id, _), *_ = [one for one in before if one[1] != "waiting"]
    failed = {"status": "failed", "artifacts": [], "error_code": "x", "retryable": False}
    said(each_site, "Worker Hub", "job.failed", f"{job_id}:1", job_id=job_id, run_id=run_id, **failed)
    # a job of ours under a run that is nobody's
    said(each_site, "Worker Hub", "job.failed", f"{job_id}:1:2", job_id=job_id, run_id="run_unknown", **failed)
    said(each_site, "Composer", "compose.failed", f"{run_id}:1", run_id=run_id, error_code="x")
    film = {"final_artifact_uri": "https://other.test/film.mp4", "duration_ms": 1}
    said(each_site, "Composer", "artifact.published", run_id, run_id=run_id, **film)
    each_site.queued()
    assert jobs() == before
    assert (each_site.stage(run_id), each_site.stage(other_run)) == ("executing", "executing")
    assert [one.film_uri for one in each_site.db.read(lambda tx: recent(tx, 10))] == [None, None]
