"""Rows of the stages of new major versions (B8)."""

from collections.abc import Iterable

import msgspec

from patra.bus.consuming.version_stages import Stage, StagedMajor
from patra.kernel.db import Queries, Tx

Q = Queries.load("patra.bus")


def find(tx: Tx) -> list[StagedMajor]:
    return [stage_major(*row) for row in tx.fetch(Q["stages"])]


def majors_not_for_all(tx: Tx) -> dict[str, set[int]]:
    """By type, the majors that are in shadow or dual: groups that read the one before too still get that."""
    found: dict[str, set[int]] = {}
    for one in find(tx):
        if one.stage in {Stage.SHADOW, Stage.DUAL}:
            found.setdefault(one.event_type, set()).add(one.major)
    return found


def put(tx: Tx, stages: Iterable[StagedMajor]) -> None:
    for one in stages:
        params = msgspec.structs.asdict(one)
        tenants = msgspec.json.encode(one.tenants).decode()
        tx.execute(Q["stage_set"], params | {"stage": one.stage.value, "tenants": tenants})


def stage_major(
    event_type: str, major: int, stage: str, tenants: str, share: int, by: str = "", at: int = 0
) -> StagedMajor:
    return StagedMajor(
        event_type=event_type,
        major=major,
        stage=Stage(stage),
        tenants=msgspec.json.decode(tenants, type=tuple[str, ...]),
        share=share,
        changed_by=by,
        changed_at=at,
    )
