"""Shows which windows of a source were read and whether they add up, and certifies it (rulings I10, I13).

A certificate is JSON: every window with its counts, the fingerprint of the snapshot it was read by and a hash of the
evidence of its batches, and a canonical hash (RFC 8785) over all of it. It can be checked without the store.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from patra.ingest.landing.store import Q
from patra.ingest.landing.window_ledger import Proof, WindowState, made_good
from patra.ingest.operations.rereads import Reread, rereads
from patra.kernel.canonical import fingerprint
from patra.kernel.clock import format_instant
from patra.kernel.db import Tx
from patra.kernel.errors import Invalid
from patra.kernel.safety.untrusted_text import integer_of

CERTIFICATE_VERSION = 2
KNOWN_CERTIFICATES = (1, CERTIFICATE_VERSION)
MAX_WINDOWS_PER_READ = 1000


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """One leg of a window, with what it promised and what came. `made_good`: it was read to its end since."""

    source: str
    endpoint: str
    operation: str
    leg: str
    since: str | None
    until: str | None
    status: str
    made_good: bool
    total: str
    proof: str = ""
    """What shows that nothing is missing: TOTAL, ESTIMATE, READINGS (two that agree), IDS, or NONE."""
    promised_first: int | None
    promised: int | None
    positions: int
    distinct: int
    landed: int
    quarantined: int
    null_items: int
    without_id: int
    suppressed: int
    outside: int
    gone: int
    missing: int
    detail: str
    readings: int
    task: str
    run: str
    spec: str
    closed: str


class Sum(msgspec.Struct, frozen=True, kw_only=True):
    """All windows together; `open` do not add up or failed, and nothing has read them since.

    `unproven` are complete as far as their lists said; no total and no second reading shows that nothing is missing.
    """

    windows: int = 0
    complete: int = 0
    open: int = 0
    unproven: int = 0
    promised: int = 0
    positions: int = 0
    landed: int = 0
    quarantined: int = 0
    missing: int = 0


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of windows in the order of time; `after` asks for the next one, empty where there is none."""

    windows: list[Window]
    sum: Sum
    after: str = ""
    rereads: list[Reread] = []
    """Rolling re-reads that the pack declares, with their results."""


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """What a certificate is worth: `problems` is empty where it is genuine and every window adds up.

    `unproven` of its windows end as their lists did, and nothing counts them.
    """

    source: str
    windows: int
    unproven: int
    hash: str
    problems: list[str]


def coverage(
    tx: Tx, source: str, endpoint: str = "", *, operation: str = "", limit: int = 100, after: str = ""
) -> Coverage:
    """Windows of a source, the earliest first; the sum is that of all of them, whatever the page shows."""
    again = rereads(tx, source, endpoint)
    page = msgspec.structs.replace(_page(tx, source, endpoint, operation, limit, after), rereads=again)
    if not after and not page.after:
        return page
    return msgspec.structs.replace(page, sum=_sum_of_all(tx, source, endpoint, operation))


def _sum_of_all(tx: Tx, source: str, endpoint: str, operation: str) -> Sum:
    """The sum of all windows: those that add up by the sums that are kept, the few that do not one by one."""
    params = {"source": source, "endpoint": endpoint, "operation": operation}
    done = tx.fetch_dicts(Q["ledger_sum"], params)[0]
    rest = sum_windows([_window(tx, row) for row in tx.fetch_dicts(Q["ledger_open"], params)])
    return Sum(
        windows=int(done["windows"]) + rest.windows,
        complete=int(done["windows"]),
        open=rest.open,
        unproven=int(done["unproven"]),
        promised=int(done["promised"]) + rest.promised,
        positions=int(done["positions"]) + rest.positions,
        landed=int(done["landed"]) + rest.landed,
        quarantined=int(done["quarantined"]) + rest.quarantined,
        missing=int(done["missing"]) + rest.missing,
    )


def _page(tx: Tx, source: str, endpoint: str, operation: str, limit: int, after: str) -> Coverage:
    start, _, task = after.partition("|")
    place = integer_of(start)
    if after and place is None:
        raise Invalid(
            "i_bad_page", f"{after!r} is not a place in a list of windows", advice="take `after` as it was given"
        )
    rows = tx.fetch_dicts(
        Q["ledger_page"],
        {
            "source": source,
            "endpoint": endpoint,
            "operation": operation,
            "after_from": -(2**62) if place is None else place,
            "after_task": task,
            "limit": limit + 1,
        },
    )
    shown = rows[:limit]
    windows = [_window(tx, row) for row in shown]
    last = shown[-1] if len(rows) > limit else None
    following = "" if last is None else f"{last['window_from'] or 0}|{last['task_id']}{last['leg_code']}"
    return Coverage(windows=windows, sum=sum_windows(windows), after=following)


def sum_windows(windows: list[Window]) -> Sum:
    """The lists of all windows that stand: those whose rest went to smaller ones, or that were read again, do not."""
    lists = [one for one in windows if one.leg == "LIST"]
    stand = [one for one in lists if one.status == WindowState.COMPLETE or (_is_open(one) and not one.made_good)]
    legs = {(one.task, one.leg): one for one in windows}
    yields = [legs.get((one.task, "DETAIL"), one) for one in stand]
    return Sum(
        windows=len(stand),
        complete=sum(1 for one in stand if one.status == WindowState.COMPLETE),
        open=sum(1 for one in stand if one.status != WindowState.COMPLETE),
        unproven=sum(1 for one in stand if _is_unproven(one)),
        promised=sum(one.promised or 0 for one in stand),
        positions=sum(one.positions for one in stand),
        landed=sum(one.landed for one in yields),
        quarantined=sum(one.quarantined for one in yields),
        missing=sum(one.missing for one in stand),
    )


def certificate(tx: Tx, source: str, endpoint: str = "", *, now: int) -> dict[str, Any]:
    """All windows of a source with the hashes of their evidence, and a hash over everything."""
    windows: list[dict[str, Any]] = []
    found: list[Window] = []
    after = ""
    while True:
        page = _page(tx, source, endpoint, "", MAX_WINDOWS_PER_READ, after)
        for one in page.windows:
            evidence = tx.fetch_dicts(Q["ledger_evidence"], {"task_id": one.task})
            windows.append({**msgspec.to_builtins(one), "evidence": fingerprint(evidence), "batches": len(evidence)})
        found += page.windows
        after = page.after
        if not after:
            break
    body: dict[str, Any] = {
        "certificate": CERTIFICATE_VERSION,
        "source": source,
        "endpoint": endpoint,
        "made": format_instant(now),
        "windows": windows,
        "sum": msgspec.to_builtins(sum_windows(found)),
        "rereads": msgspec.to_builtins(rereads(tx, source, endpoint)),
    }
    return {**body, "hash": fingerprint(body)}


def verify(text: bytes | str) -> Verified:
    """Check a certificate by itself: its hash, its sums, and that every window that stands adds up."""
    try:
        tree: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
        windows = [_with_proof(one) for one in msgspec.convert(tree["windows"], list[Window])]
    except (msgspec.MsgspecError, KeyError, UnicodeDecodeError) as error:
        raise Invalid("i_bad_certificate", f"this is not a certificate of coverage: {error}") from error
    body: Mapping[str, Any] = {name: value for name, value in tree.items() if name != "hash"}
    problems: list[str] = []
    if fingerprint(body) != tree.get("hash"):
        problems.append("the hash does not fit: the certificate was changed")
    if tree.get("certificate") not in KNOWN_CERTIFICATES:
        problems.append(f"version {tree.get('certificate')} is not known here")
    sums = msgspec.to_builtins(sum_windows(windows))
    if tree.get("certificate") == 1:  # did not count them
        del sums["unproven"]
    if sums != tree.get("sum"):
        problems.append("the sum is not that of its windows")
    for one in windows:
        if one.made_good or one.status == WindowState.HANDED_OVER:
            continue
        if _is_open(one) or one.missing:
            problems.append(f"{_name(one)}: {one.status}, {one.missing} missing")
        elif one.leg == "LIST" and one.total == "EXACT" and one.promised is not None:
            if one.positions + one.suppressed < one.promised:
                problems.append(f"{_name(one)}: {one.positions} of {one.promised} promised positions")
        elif one.leg == "DETAIL" and one.landed + one.quarantined + one.gone < one.positions:
            problems.append(f"{_name(one)}: {one.positions} ids were listed, fewer landed or were set aside")
    unproven = sum(1 for one in windows if _is_unproven(one))
    return Verified(
        source=tree.get("source", ""),
        windows=len(windows),
        unproven=unproven,
        hash=tree.get("hash", ""),
        problems=problems,
    )


def _name(one: Window) -> str:
    return f"{one.source}/{one.endpoint} {one.since} … {one.until}"


def _with_proof(one: Window) -> Window:
    """A window of a certificate of version 1, which has no proof: an exact total is one."""
    exact = one.total == "EXACT" and one.promised is not None
    known = Proof.TOTAL if exact else Proof.IDS if one.operation == "UPDATE" else Proof.NONE
    return one if one.proof else msgspec.structs.replace(one, proof=known.value)


def _is_unproven(one: Window) -> bool:
    return one.status == WindowState.COMPLETE and one.leg == "LIST" and one.proof == Proof.NONE


def _is_open(one: Window) -> bool:
    return one.status in {WindowState.INCOMPLETE, WindowState.FAILED}


def _window(tx: Tx, row: dict[str, Any]) -> Window:
    state = row["status_code"]
    landed = sum(row[name] for name in ("inserted", "updated", "equal_count", "older_count", "repeated"))
    return Window(
        source=row["provenance_code"],
        endpoint=row["endpoint_name"],
        operation=row["operation_code"],
        leg=row["leg_code"],
        since=None if row["window_from"] is None else format_instant(row["window_from"]),
        until=None if row["window_to"] is None else format_instant(row["window_to"]),
        status=state,
        made_good=state in {WindowState.INCOMPLETE, WindowState.FAILED} and made_good(tx, row),
        total=row["total_code"],
        proof=row["proof_code"],
        promised_first=row["promised_first"],
        promised=row["promised_last"],
        positions=row["positions"],
        distinct=row["distinct_ids"],
        landed=landed,
        quarantined=row["quarantined"],
        null_items=row["null_items"],
        without_id=row["without_id"],
        suppressed=row["suppressed"],
        outside=row["outside"],
        gone=row["gone"],
        missing=row["missing"],
        detail=row["detail"],
        readings=row["readings"],
        task=row["task_id"],
        run=row["run_id"],
        spec=row["spec_fingerprint"],
        closed=format_instant(row["closed_at"]),
    )
