"""Kill hub, workers and composer with -9 at random while films are made, and see that each run ends in one film.

    python -m tests.prove.studio_kills [RUNS]

Three processes share a store: one dispatches (every module of the bus, the hub), one works, one composes. One of them is
killed at random again and again and started again, until the run has ended. Then: one `artifact.published`, each job
succeeded once, the film whole and of its recorded hash, and no file in the artifact folder that no manifest names.
"""

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from patra.bus.bus import Bus
from patra.bus.catalogue.catalogue import load
from patra.bus.publishing.envelope import decode_trusted
from patra.bus.store import events
from patra.kernel.clock import SECOND, SystemClock
from patra.kernel.db import migrate, open_database
from patra.kernel.errors import Invalid, PatraError
from patra.studio.film.ffmpeg import probe
from patra.studio.film.quality import QUALITIES, Quality
from patra.studio.gateway import Options, Submission
from patra.studio.hub import Limits
from patra.studio.pipeline import Studio
from patra.studio.profiles import load_profiles
from patra.studio.storage.artifacts import ArtifactStore
from tests.support.faults import kill_hard

CHAPTER = (
    "The Small Boat\n\nThe sea was calm at dusk, and the harbour slept.\n\nA boy named Tom sat alone in a small boat.\n\n"
    "That night Tom followed the lighthouse all the way home."
)
TINY = Quality(name="draft", width=160, height=90, fps=8, preset="ultrafast", crf=32, smooth=1.0, audio_kbit=64)
ROLES = ("dispatch", "work", "compose")


def studio(folder: Path) -> Studio:
    QUALITIES["draft"] = TINY
    db = open_database(f"sqlite:///{folder / 'patra.db'}")
    migrate(db, ["patra.kernel", "patra.bus", "patra.studio"])
    # a starved machine may let a lease pass; that must cost time, not the shot
    limits = Limits(lease=3 * SECOND, max_losses=1000)
    return Studio(
        db, Bus(load(), SystemClock()), ArtifactStore(folder / "artifacts"), load_profiles(), limits=limits, workers=1
    )


def child(role: str, folder: Path) -> None:
    """One process: it never ends by itself."""
    made = studio(folder)
    made.join()
    duties = {
        "dispatch": [made.dispatch],
        "work": [desk.run_once for desk in made.desks],
        "compose": [made.composer.run_once],
    }[role]
    while True:
        for duty in duties:
            try:
                duty()
            except PatraError as error:
                print(role, error, file=sys.stderr)
        time.sleep(0.01)


def spawn(role: str, folder: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.prove.studio_kills", "child", role, str(folder)], stderr=subprocess.DEVNULL
    )


def one_run(folder: Path, dice: random.Random, *, number: int, seconds: float = 900.0, most_kills: int = 12) -> str:
    """Make one film under fire; gives a line that says how it went. Raises AssertionError when a promise is broken."""
    made = studio(folder)
    made.join()
    run_id = made.submit(Submission(chapter=CHAPTER, options=Options(fresh=f"run {number}")))
    children = {role: spawn(role, folder) for role in ROLES}
    kills: Counter[str] = Counter()
    until = time.monotonic() + seconds

    def kill(role: str) -> None:
        kill_hard(children[role])
        kills[role] += 1
        children[role] = spawn(role, folder)

    try:
        while not at_work(made, run_id) and time.monotonic() < until:
            time.sleep(0.02)
        kill("work")  # with a job running or just done, and most of them still to do
        while True:
            time.sleep(0.3 + 2.2 * dice.random())
            if ended(made, run_id):
                break
            if time.monotonic() > until:
                raise AssertionError(f"{run_id} did not end: {made.progress(run_id)}")
            if sum(kills.values()) < most_kills:
                kill(dice.choice(ROLES))
    finally:
        for process in children.values():
            kill_hard(process)
    check(made, run_id)
    made.db.close()
    return f"run {number}: {dict(kills)} killed, {made_jobs(kills)}"


def made_jobs(kills: "Counter[str]") -> str:
    return f"{sum(kills.values())} kills in all"


def at_work(made: Studio, run_id: str) -> bool:
    """Whether a worker has begun."""
    try:
        states = [state for kind in made.progress(run_id).jobs.values() for state in kind]
    except Invalid:
        return False
    return "claimed" in states or "succeeded" in states


def ended(made: Studio, run_id: str) -> bool:
    try:
        return made.progress(run_id).has_ended
    except Invalid:
        return False


def check(made: Studio, run_id: str) -> None:
    while made.dispatch().events:  # what the killed had still to hear
        pass
    seen = made.progress(run_id)
    assert (seen.stage, seen.left_out) == ("completed", []), seen
    stored = made.db.read(lambda tx: events.by_correlation(tx, seen.task_id, 10_000))
    log = [decode_trusted(one.body) for one in stored if one.body]
    counts = Counter(e.event_type for e in log)
    assert counts["artifact.published"] == counts["compose.completed"] == 1, counts
    succeeded = Counter(e.payload["job_id"] for e in log if e.event_type == "job.succeeded")
    created = {e.payload["job_id"] for e in log if e.event_type == "job.created"}
    assert set(succeeded) == created
    assert set(succeeded.values()) == {1}, succeeded
    film, manifest = made.film(run_id)
    assert abs(probe(film).duration_ms - manifest.facts["duration_ms"]) <= 100
    made.artifacts.sweep()
    assert made.artifacts.orphans() == [], made.artifacts.orphans()


def main(runs: int = 10, seed: int = 20261116) -> int:
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="patra-kills-") as folder:
        for number in range(1, runs + 1):
            print(one_run(Path(folder), dice, number=number), flush=True)
    print(f"{runs} runs, each one film")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(sys.argv[2], Path(sys.argv[3]))
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
