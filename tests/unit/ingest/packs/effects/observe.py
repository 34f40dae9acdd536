"""What a change of a pack is observed in: a request, a plan, a decision, or what a harvest brings."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from patra.ingest.execution.compiled_plan import CompiledPlan
from patra.ingest.extraction.classify import Action
from patra.ingest.http.client import Answer
from patra.ingest.http.credentials import NoSecret, secrets_of
from patra.ingest.http.request import Position
from patra.ingest.landing.page_records import records_of
from patra.ingest.packs.compiler import check_pack, compile_spec
from patra.ingest.packs.spec import Spec
from patra.ingest.planning.slicing.windows import Span
from patra.ingest.planning.store import report_total
from patra.ingest.planning.trigger import Trigger
from patra.ingest.ratelimit.limiter import LocalGate
from patra.ingest.ratelimit.policy import signal_of
from patra.ingest.ratelimit.token_bucket import Ask
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.ingest.works.docs import pack_section
from patra.kernel.clock import HOUR
from patra.kernel.testing import ManualClock
from tests.support.hostile_provider import Habits, Item, Provider
from tests.unit.ingest.packs.effects.stand_in import NOW, SECRETS, T0, T1, Script, Site, Tree, loaded_tree, site, spread

Observer = Callable[[Tree], Any]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A change of one field. Paths lead from the endpoint `search` on, with `/` in front from the pack's top."""

    observe: Observer
    path: str
    value: Any
    given: Mapping[str, Any] = {}
    """What the pack has to say so that the field matters."""
    effect: str
    """What changes: a request, the check of a pack, a plan, a verdict, a record, a harvest, a page of documentation."""


def case(observe: Observer, path: str, value: Any, **given: Any) -> Case:
    effect = (observe.__doc__ or "").partition("\n")[0].rstrip(".")
    return Case(observe=observe, path=path, value=value, given=given.pop("given", {}), effect=effect)


BASE: Tree = {
    "pack": 1,
    "source": "s",
    "version": "1",
    "title": "S",
    "hosts": ["api.example.org", "auth.example.org"],
    "defaults": {
        "http": {"baseUrl": "https://api.example.org"},
        "rateLimit": {"refillRatePerSec": 10, "burstCapacity": 1},
    },
    "endpoints": {
        "search": {
            "method": "GET",
            "path": "/offset",
            "supports": ["HARVEST", "BACKFILL", "UPDATE"],
            "http": {
                "queryTemplate": {
                    "from": "${window.from}",
                    "until": "${window.until}",
                    "size": "${page.size}",
                    "offset": "${page.offset}",
                }
            },
            "pagination": {"type": "OFFSET", "pageSize": 10},
            "ordering": {"stable": True},
            "window": {
                "supportsUpdatedSince": True,
                "watermarkKey": "updated",
                "align": "min",
                "minWindow": "PT1M",
                "maxWindow": "P2D",
                "initial": "2026-03-01T00:00:00Z",
            },
            "response": {
                "itemsPath": "$.items",
                "idPath": "$.id",
                "updatedAtPath": "$.updated",
                "totalPath": "$.total",
            },
            "twoPhase": {"linkedEndpoint": "details"},
            "output": {"fields": {"title": "$.title"}},
        },
        "details": {
            "method": "POST",
            "role": "DETAIL",
            "path": "/details",
            "http": {"bodyTemplate": {"kind": "FORM", "fields": {"ids": "${join(ids, ',')}"}}},
            "response": {"itemsPath": "$.items", "idPath": "$.id", "updatedAtPath": "$.updated"},
            "output": {"fields": {"title": "$.title"}},
        },
    },
}

TOKEN = {
    "path": "/token",
    "http.queryTemplate.offset": None,
    "http.queryTemplate.token": "${page.token}",
    "pagination": {"type": "TOKEN", "initial": {"token": "*"}, "nextTokenPath": "$.next", "pageSize": 10},
}
URL = {
    "path": "/url",
    "http.queryTemplate.offset": None,
    "pagination": {"type": "URL", "nextUrlPath": "$.next", "pageSize": 10},
}
PAGE = {
    "path": "/page",
    "http.queryTemplate.offset": None,
    "http.queryTemplate.page": "${page.no}",
    "pagination": {"type": "PAGE", "base1": True, "pageSize": 10},
}
TWO_PHASE = {"twoPhase": {"enabled": True, "linkedEndpoint": "details"}, "http.queryTemplate.ids": "1",
             "response.idPath": "$", "response.updatedAtPath": ""}  # fmt: skip
KEY = {
    "/credentials": {"key": {"type": "API_KEY", "secrets": {"apiKey": "env:KEY"}}},
    "auth": {"type": "API_KEY", "location": "QUERY", "name": "k", "credentialRef": "key"},
}
OAUTH2 = {
    "/credentials": {"key": {"type": "OAUTH2", "secrets": {"clientId": "env:CLIENT", "clientSecret": "env:KEY"}}},
    "auth": {
        "type": "OAUTH2",
        "credentialRef": "key",
        "oauth2": {"tokenUrl": "https://auth.example.org/token-endpoint"},
    },
}


def built(given: Mapping[str, Any]) -> Tree:
    """The base pack with paths set; None takes one away."""
    tree = copy.deepcopy(BASE)
    for path, value in given.items():
        put(tree, path, value)
    return tree


def put(tree: Tree, path: str, value: Any) -> None:
    here = tree
    *parents, last = path[1:].split(".") if path.startswith("/") else ["endpoints", "search", *path.split(".")]
    for name in parents:
        here = here.setdefault(name, {})
    if value is None:
        here.pop(last, None)
    else:
        here[last] = copy.deepcopy(value)


# --- without a store


def compiled(tree: Tree, operation: Operation = Operation.HARVEST) -> Spec:
    found = compile_spec(loaded_tree(tree), "search", operation)
    assert found.spec is not None, [str(problem) for problem in found.problems]
    return found.spec


def plan_of(tree: Tree, operation: Operation = Operation.HARVEST) -> CompiledPlan:
    pack = loaded_tree(tree).pack
    return CompiledPlan(compiled(tree, operation), lambda ref: {ref: pack.credentials[ref]})


def position(**given: Any) -> Position:
    return Position(
        **{
            "source": "s", "endpoint": "search", "operation": Operation.HARVEST, "now": NOW, "window_from": T0,
            "window_to": T1, "window_until": T1, "page_no": 1, "page_index": 0, "page_size": 10, "offset": 0,
        }
        | given
    )  # fmt: skip


def _outgoing(tree: Tree, *, detail: bool = False, environ: Mapping[str, str] = SECRETS, **given: Any) -> Any:
    plan = plan_of(tree)
    line = plan.detail if detail else plan.listing
    assert line is not None
    secrets = secrets_of(line.leg, line.credential, environ)
    if isinstance(secrets, NoSecret):
        return secrets.code
    return msgspec.to_builtins(line.outgoing(position(**given), secrets, "c"))


def request(tree: Tree) -> Any:
    """The request of a page."""
    return _outgoing(tree)


def anonymous_request(tree: Tree) -> Any:
    """The request of a page where the secret is not there."""
    return _outgoing(tree, environ={})


def second_request(tree: Tree) -> Any:
    """The request of the second page."""
    return _outgoing(tree, page_index=1, page_no=2, offset=10, token="t2")


def next_url_request(tree: Tree) -> Any:
    """The request of a next URL."""
    return _outgoing(tree, page_index=1, url="https://api.example.org/other?cursor=2")


def detail_request(tree: Tree) -> Any:
    """The request of details."""
    return _outgoing(tree, detail=True, ids=("r1", "r2"))


def checked(tree: Tree) -> Any:
    """What the check of a pack says."""
    return sorted({(one.code.value, one.severity.value, one.message) for one in check_pack(loaded_tree(tree))})


def compilation(tree: Tree) -> Any:
    """Whether a plan compiles."""
    return sorted({one.code.value for one in compile_spec(loaded_tree(tree), "search", Operation.HARVEST).problems})


def watermark(tree: Tree) -> Any:
    """Which watermark is moved."""
    spec = compiled(tree)
    return spec.cursor.type, spec.cursor.scope, spec.cursor.direction, spec.cursor.key, spec.cursor.namespace_key


def verdict(
    status: int = 200, body: str = '{"items": [], "total": 0}', kind: str = "application/json", **headers: str
) -> Observer:
    """The verdict on an answer."""
    named = {"content-type": kind, **{name.replace("_", "-"): value for name, value in headers.items()}}
    answer = Answer(status=status, headers=named, body=body.encode(), url="https://api.example.org/offset",
                    elapsed=1000, wire_bytes=len(body))  # fmt: skip

    def observe(tree: Tree) -> Any:
        line = plan_of(tree).listing
        found, document = line.classifier.judge(answer, NOW)
        page: Any = None
        if document is not None and found.action is Action.ACCEPT:
            listed = line.reader.page(document, answer.headers, answer.url)
            found = line.classifier.judge_list(listed, position()) or found
            page = len(listed.items or []), listed.total, listed.has_more, listed.token, listed.url
        return found.action, found.code, found.level, found.rule, found.retry_after, found.advice, page

    observe.__doc__ = verdict.__doc__
    return observe


def record(item: Mapping[str, Any]) -> Observer:
    """The record that an item becomes."""
    full = {"id": "r1", "updated": "2026-03-01T10:00:00Z", "title": "A title", **item}

    def observe(tree: Tree) -> Any:
        plan = plan_of(tree)
        landing = records_of(plan.listing, [full], NOW, plan.plan)
        kept = [(r.id, r.updated_at, r.version, r.deleted, bytes(r.content)) for r in landing.records]
        return kept, [(bad.key, bad.code, bad.path) for bad in landing.bad]

    observe.__doc__ = record.__doc__
    return observe


def xml_record(body: str) -> Observer:
    """The records of an XML page."""
    answer = Answer(status=200, headers={"content-type": "application/xml"}, body=body.encode(),
                    url="https://api.example.org/offset", elapsed=1000, wire_bytes=len(body))  # fmt: skip

    def observe(tree: Tree) -> Any:
        plan = plan_of(tree)
        found, document = plan.listing.classifier.judge(answer, NOW)
        if document is None:
            return found.code
        listed = plan.listing.reader.page(document, answer.headers, answer.url)
        landing = records_of(plan.listing, listed.items or [], NOW, plan.plan)
        return [(r.id, bytes(r.content)) for r in landing.records], [(bad.code, bad.path) for bad in landing.bad]

    observe.__doc__ = xml_record.__doc__
    return observe


def permits(tree: Tree) -> Any:
    """What the rate gate allows two tasks that ask at the same time."""
    gate, line = LocalGate(ManualClock(NOW)), plan_of(tree).listing
    key, policy = line.gate({"apiKey": "k"})
    first = gate.ask(key, policy, Ask(task="a", permit="1", want=20))
    headers = {"x-many": "1"}
    told = signal_of(200, headers, line.leg.rate_limit.headers, adaptive=True, now=NOW, permit="", allowed_at=NOW)
    gate.tell(key, policy, told)
    return first, gate.ask(key, policy, Ask(task="b", permit="2"))


def documentation(tree: Tree) -> Any:
    """The page of sources."""
    return list(pack_section(loaded_tree(tree)))


# --- with a store


def planned(operation: Operation = Operation.HARVEST, *, estimate: int | None = None, **trigger: Any) -> Observer:
    """The plan and its slices."""

    def observe(tree: Tree) -> Any:
        with site() as s:
            s.load(tree)
            if estimate is not None:
                _estimate(s, tree, estimate)
            made = s.trigger(operation, **trigger)
            return made.outcome, made.detail if made.plan_id is None else "", s.plans

    observe.__doc__ = planned.__doc__
    return observe


def _estimate(s: Site, tree: Tree, total: int) -> None:
    """A history: the window is known to hold so many."""
    selection = compiled(tree).selection_key
    s.db.run(lambda tx: report_total(tx, selection, Span(T0, T1), total, NOW))


def harvested(
    operation: Operation = Operation.HARVEST,
    *,
    items: list[Item] | None = None,
    habits: Habits | None = None,
    script: Script = lambda *_: None,
    then: Callable[[Site], None] | None = None,
    environ: Mapping[str, str] = SECRETS,
    show: Callable[[Site], Any] | None = None,
    **trigger: Any,
) -> Observer:
    """A harvest: its requests with their times, its records, its tasks."""

    def observe(tree: Tree) -> Any:
        with site(provider=Provider(spread() if items is None else items, habits), script=script, environ=environ) as s:
            s.load(tree)
            made = s.trigger(operation, **trigger)
            assert made.outcome is not Reason.COMPILE_FAILED, made.detail
            s.drain()
            if then is not None:
                then(s)
                s.drain()
            return made.outcome, show(s) if show is not None else (s.sent, s.landed, s.outcome)

    observe.__doc__ = harvested.__doc__
    return observe


def scheduled(days: int = 2, hours: int = 12) -> Observer:
    """What a schedule fires."""

    def observe(tree: Tree) -> Any:
        with site() as s:
            s.load(tree)
            for _ in range(days * 24 // hours):
                s.planner.run_once()
                s.clock.advance(hours * HOUR)
            ticks = s.rows(
                "SELECT scheduler_job_id, trigger_type_code, triggered_at - :now FROM ing_schedule_instance ORDER BY triggered_at",
                now=NOW,
            )
            return ticks, s.plans

    observe.__doc__ = scheduled.__doc__
    return observe


def next_url_refusal(tree: Tree, url: str) -> str:
    """The code with which a next URL is refused."""
    found = _outgoing(tree, page_index=1, url=url)
    return found["code"] if isinstance(found, dict) else ""


def preview(tree: Tree) -> Any:
    """What a trigger would do."""
    with site() as s:
        s.load(tree)
        return s.planner.preview(Trigger(source="s", endpoint="search", operation=Operation.HARVEST))
