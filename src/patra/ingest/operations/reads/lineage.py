"""Rows of the chain trigger → plan → slice → task → run → batch → record, each read by its own key (ch. 14.7).

Every statement is bounded and goes by an index, whatever the size of the tables. Nothing is written.
"""

from typing import Any

from patra.ingest.planning.store import Q
from patra.kernel.canonical import key16
from patra.kernel.db import Row, Tx

Fields = dict[str, Any]
_ALL_BATCHES = (0, 2**62)


def instance(tx: Tx, key: str) -> Fields | None:
    """A trigger, by its id or its trigger key."""
    return _first(tx.fetch_dicts(Q["story_instance"], {"key": key}))


def plans_of_instance(tx: Tx, instance_id: str, limit: int) -> list[str]:
    return [plan_id for (plan_id,) in tx.fetch(Q["story_plans_of_instance"], {"key": instance_id, "limit": limit})]


def plan(tx: Tx, plan_id: str) -> Fields | None:
    return _first(tx.fetch_dicts(Q["story_plan"], {"key": plan_id}))


def plan_slice(tx: Tx, slice_id: str) -> Fields | None:
    return _first(tx.fetch_dicts(Q["story_slice"], {"key": slice_id}))


def task(tx: Tx, task_id: str) -> Fields | None:
    return _first(tx.fetch_dicts(Q["story_task"], {"key": task_id}))


def tasks_of_plan(tx: Tx, plan_id: str, limit: int) -> list[Fields]:
    """The first tasks of a plan: their ids begin with its own."""
    params = {"first": f"{plan_id}.t", "last": f"{plan_id}.u", "limit": limit}
    return tx.fetch_dicts(Q["story_tasks_of_plan"], params)


def task_id_of_slice(slice_id: str) -> str:
    """A slice and its task have the same number in their plan."""
    plan_id, _, number = slice_id.rpartition(".s")
    return f"{plan_id}.t{number}"


def run(tx: Tx, run_id: str) -> Fields | None:
    return _first(tx.fetch_dicts(Q["story_run"], {"key": run_id}))


def runs_of_task(tx: Tx, task_id: str, limit: int) -> list[Fields]:
    return tx.fetch_dicts(Q["story_runs_of_task"], {"key": task_id, "limit": limit})


def batches(tx: Tx, run_id: str, limit: int, batch_no: int | None = None) -> list[Fields]:
    """The batches of a run, or one of them."""
    return tx.fetch_dicts(Q["story_batches_of_run"], _span(run_id, batch_no, limit))


def cursor_events_of_run(tx: Tx, run_id: str, limit: int, batch_no: int | None = None) -> list[Fields]:
    return tx.fetch_dicts(Q["story_cursor_events_of_run"], _span(run_id, batch_no, limit))


def records(tx: Tx, ids: list[str], limit: int) -> list[Fields]:
    """Records by the id that their provider gave them, of every endpoint that has one."""
    return tx.fetch_dicts(Q["story_records"], {"limit": limit}, rows=_rows(ids))


def identify_records(tx: Tx, identifiers: list[str], limit: int) -> list[Fields]:
    """Records by their DOI, or by their own id in its short form, of every source that has one."""
    return tx.fetch_dicts(Q["story_records_identified"], {"limit": limit}, rows=_rows(identifiers))


def identifiers(tx: Tx, record: Fields) -> list[str]:
    """Under which a record is found beside the id of its provider."""
    place = {"source": record["provenance_code"], "endpoint": record["endpoint_name"], "id": record["provider_id"]}
    return [identifier for (identifier,) in tx.fetch(Q["story_identifiers"], place)]


def quarantined_records(tx: Tx, ids: list[str], limit: int) -> list[Fields]:
    return tx.fetch_dicts(Q["story_quarantine"], {"limit": limit}, rows=_rows(ids))


def signals(tx: Tx, ids: list[str], limit: int) -> list[Fields]:
    return tx.fetch_dicts(Q["story_signals"], {"limit": limit}, rows=_rows(ids))


def cursors(tx: Tx, namespace: str, limit: int, *, source: str = "", operation: str = "") -> list[Fields]:
    params = {"namespace": namespace, "source": source, "operation": operation, "limit": limit}
    return tx.fetch_dicts(Q["story_cursors"], params)


def cursor_events(tx: Tx, cursor: Fields, limit: int) -> list[Fields]:
    """The newest events of a cursor."""
    params = {
        "source": cursor["provenance_code"],
        "operation": cursor["operation_code"],
        "scope": cursor["namespace_scope_code"],
        "namespace": cursor["namespace_key"],
        "cursor_key": cursor["cursor_key"],
        "limit": limit,
    }
    return tx.fetch_dicts(Q["story_cursor_events"], params)


def relay_head(tx: Tx, channel: str, group: str) -> Fields | None:
    """The oldest message of a group that is not delivered; all that were appended later wait behind it."""
    found = tx.fetch_dicts(Q["story_relay_head"], {"channel": channel, "group_key": key16(group)})
    return _first(found)


def _span(run_id: str, batch_no: int | None, limit: int) -> Fields:
    first, last = _ALL_BATCHES if batch_no is None else (batch_no, batch_no)
    return {"key": run_id, "first": first, "last": last, "limit": limit}


def _rows(ids: list[str]) -> list[Row]:
    return [(one,) for one in dict.fromkeys(ids)]


def _first(rows: list[Fields]) -> Fields | None:
    return rows[0] if rows else None
