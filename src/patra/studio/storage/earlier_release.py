"""Reads what processes of release 0.2.0 leave out of their events and rows, from the tables of the modules that know.

The one place where a module reads a table of another. During a rolling upgrade processes of 0.2.0 work on the same
store, and what they began goes on after it. All of this, its statements and the calls of it can go with the release
after the next one: it cannot be rolled out next to 0.2.0 any more.
"""

import msgspec

from patra.bus.store import events
from patra.kernel.db import Tx
from patra.studio.storage import store
from patra.studio.storage.store import FilmRow, NamedParts, Q
from patra.studio.vocabulary.contracts import plan_id_of


def film_with_parts(tx: Tx, film: FilmRow) -> FilmRow | None:
    """A film with its plan and the results that it is made of, also where 0.2.0 wanted it, or wanted it again.

    Nothing where the run composes no film of this epoch any more.
    """
    if film.parts and msgspec.json.decode(film.parts, type=NamedParts).epoch == film.epoch:
        return film
    run = store.run(tx, film.run_id)
    if run is None or (run.stage, run.epoch) != ("composing", film.epoch):
        return None
    plan_id = plan_id_of(run.run_id, run.plan_version)
    ended = tx.fetch(Q["earlier_results"], {"run_id": run.run_id, "plan_id": plan_id})
    parts = store.text(NamedParts(epoch=film.epoch, attempts=dict(ended)))
    return msgspec.structs.replace(film, plan_id=plan_id, parts=parts)


def plan_version(tx: Tx, run_id: str, epoch: int) -> int:
    """Which plan of its run a `run.stage.changed` of 0.2.0 asks for; none where the run has another epoch since."""
    run = store.run(tx, run_id)
    return run.plan_version if run and run.epoch == epoch else 0


def hold_composing_run(tx: Tx, film: FilmRow) -> bool:
    """Whether the run still composes a film of this epoch; it stays so until the transaction ends.

    A run that 0.2.0 cancels leaves its film wanted until the Composer hears of it.
    """
    return store.hold_run(tx, film.run_id) == ("composing", film.epoch)


def films_given_up(tx: Tx) -> list[FilmRow]:
    """Films that could not be made, whose runs still wait for them because no `compose.failed` was said."""
    runs = [run_id for (run_id,) in tx.fetch(Q["earlier_films_given_up"])]
    films = [film for run_id in runs if (film := store.film(tx, run_id))]
    return [film for film in films if not _was_said(tx, film)]


def _was_said(tx: Tx, film: FilmRow) -> bool:
    said = events.by_idempotency_keys(tx, [f"{film.run_id}:{film.epoch}"])
    return any(one.event_type == "compose.failed" for one in said)
