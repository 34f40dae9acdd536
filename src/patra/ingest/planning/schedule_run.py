"""A schedule that is run by hand, or by cron and systemd timers: noted in its history like a tick of its own.

Its tick is the instant at which it was asked for. The schedule's own ticks fire as if it had not been.
"""

from patra.ingest.planning import store
from patra.ingest.planning.planner import Planned, Planner
from patra.ingest.planning.schedule import Scheduled, trigger_now
from patra.kernel.clock import Clock
from patra.kernel.db import Database, Tx


def run_schedule(db: Database, clock: Clock, entry: Scheduled) -> Planned:
    """Plan what a schedule would plan, now; its file is written when the plan is done, as after a tick."""
    tick = clock.now()
    made = Planner(db, clock).trigger(trigger_now(entry, tick))
    db.run(lambda tx: note_run(tx, entry, made, tick, clock.now()))
    return made


def note_run(tx: Tx, entry: Scheduled, made: Planned, tick: int, now: int) -> None:
    """The line in the history; one that was refused writes no file."""
    said = "; ".join(filter(None, (made.detail, made.note)))
    then = None if made.is_refused else entry.then
    store.write_schedule_history(tx, entry.job, tick, made.outcome.value, said, made.plan_id, then, now)
