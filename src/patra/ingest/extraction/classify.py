"""Turns what came back from a provider into its class L1 to L4, or what else it means, and what to do (ch. 12).

The pack's rules are asked first, in their order; then the table below. Errors inside a 200, an HTML page in place of
JSON and a document cut short are errors like any other. L3 is not decided here: it concerns records.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from patra.ingest.expressions.paths import Path, compile_path, text_at
from patra.ingest.extraction.body_parser import Document, Parsed, Unreadable, parse
from patra.ingest.extraction.list_outline import list_outline, list_place, list_split
from patra.ingest.extraction.response import Listed
from patra.ingest.http.client import Answer, Exchange, Failure, Fault
from patra.ingest.http.request import Position
from patra.ingest.packs.extensions import ExtensionPoint, load_extension
from patra.ingest.packs.sections import NamedRule
from patra.ingest.packs.spec import Leg
from patra.ingest.ratelimit.policy import retry_after_of
from patra.ingest.vocabulary.codes import EmptyPage, MissingItems, Outcome, PaginationType, ResponseFormat
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import parse_duration
from patra.kernel.pattern import Pattern, pattern
from patra.kernel.safety.excerpt import redacted_excerpt

PATTERN_CHARS = 4096  # characters of a body that a rule's pattern looks at
EXCERPT_CHARS = 300
ACCEPTED = 202


class Action(StrEnum):
    """What the executor does about it (the first column of 12.2 where it concerns one request)."""

    ACCEPT = "accept"
    EMPTY = "empty"
    END = "end"
    RETRY = "retry"
    RESTART = "restart"
    RESLICE = "reslice"
    BISECT = "bisect"
    FAIL = "fail"
    HALT = "halt"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The class (`L1`…`L4`, none on success), the code, the action, and words for the batch row."""

    action: Action
    code: RunReason
    level: str | None = None
    rule: str = ""
    retry_after: int | None = None
    detail: str = ""
    advice: str = ""
    confirm: bool = False
    """A verdict that stops a source is asked for a second time before it counts."""


ASKED_TWICE = Verdict(action=Action.ACCEPT, code=RunReason.OK, confirm=True)
"""None of the ids that were asked for, or a little less than promised: believed when it is said twice."""

_ACTIONS: dict[Outcome, Action] = {
    Outcome.L1: Action.RETRY,
    Outcome.L2: Action.FAIL,
    Outcome.L3: Action.EMPTY,
    Outcome.L4: Action.HALT,
    Outcome.EMPTY: Action.EMPTY,
    Outcome.END: Action.END,
    Outcome.RESTART: Action.RESTART,
    Outcome.BISECT: Action.BISECT,
}

_FAULTS: dict[Fault, tuple[Outcome, RunReason]] = {
    Fault.TIMEOUT: (Outcome.L1, RunReason.TIMEOUT),
    Fault.DNS: (Outcome.L1, RunReason.DNS),
    Fault.TLS: (Outcome.L1, RunReason.TLS),
    Fault.CONNECT: (Outcome.L1, RunReason.CONNECT),
    Fault.RESET: (Outcome.L1, RunReason.RESET),
    Fault.TRUNCATED: (Outcome.L1, RunReason.TRUNCATED),
    Fault.BAD_ENCODING: (Outcome.L1, RunReason.NOT_TEXT),
    Fault.TOO_LARGE: (Outcome.L2, RunReason.TOO_LARGE),
    Fault.UNSENDABLE: (Outcome.L2, RunReason.UNSENDABLE),
    Fault.REDIRECT_REFUSED: (Outcome.L2, RunReason.REDIRECT_REFUSED),
    Fault.HOST_REFUSED: (Outcome.L4, RunReason.HOST_REFUSED),
}

_STATUSES: tuple[tuple[frozenset[int], Outcome, RunReason], ...] = (
    (frozenset({204, 205}), Outcome.EMPTY, RunReason.NO_CONTENT),
    (frozenset(range(300, 400)), Outcome.L2, RunReason.REDIRECT_REFUSED),
    (frozenset({401, 407}), Outcome.L4, RunReason.UNAUTHORIZED),
    (frozenset({404, 410}), Outcome.L2, RunReason.NOT_FOUND),
    (frozenset({408, 425}), Outcome.L1, RunReason.TIMEOUT),
    (frozenset({413, 414}), Outcome.L2, RunReason.URI_TOO_LONG),
    (frozenset({429}), Outcome.L1, RunReason.THROTTLED),
    (frozenset(range(400, 500)), Outcome.L2, RunReason.REQUEST_REFUSED),
    (frozenset({501, 505}), Outcome.L2, RunReason.REQUEST_REFUSED),
    (frozenset(range(500, 600)), Outcome.L1, RunReason.SERVER_ERROR),
)
"""The first row that holds the status decides, after the pack's rules and `retry.retryableStatus`."""

_ADVICE: dict[RunReason, str] = {
    RunReason.UNAUTHORIZED: "check the credential that the pack refers to, then lift the halt",
    RunReason.HOST_REFUSED: "if the provider moved, add the host to the pack's `hosts`; then lift the halt",
    RunReason.SCHEMA_CHANGED: "compare the answer with the pack's `itemsPath` (patra ingest blackbox),"
    " then lift the halt",
    RunReason.NO_LIST: "if the provider ends its lists so, name such an answer in a rule under `errors` with"
    " `outcome: END`; if its totals are too high, declare `pagination.total`",
    RunReason.URI_TOO_LONG: "send ids by POST, or lower `batching.idBatchSize`",
    RunReason.TOO_LARGE: "lower `pagination.pageSize`, or raise `http.maxResponseBytes`",
    RunReason.REQUEST_REFUSED: "compare the rendered request (patra ingest blackbox) with the provider's documentation",
    RunReason.NOT_FOUND: "check `http.baseUrl` and `http.pathTemplate`",
    RunReason.REDIRECT_REFUSED: "set `http.followRedirects`, or write the new address into the pack",
}


class Classifier:
    """One leg's rules, compiled."""

    def __init__(self, leg: Leg) -> None:
        self._leg = leg
        self._rules = [_Rule(rule, leg) for rule in leg.errors]
        self._needs_document = any(rule.path for rule in leg.errors)
        hooked = leg.pagination.next_token_hook is not None  # it may look at any part of the document
        self._place = () if hooked else list_place(leg)
        self._apart = None if hooked else list_split(leg)
        self._outline = None if hooked else list_outline(leg)
        name = leg.response.decoder
        self._decode = None if name is None else load_extension(ExtensionPoint.DECODING, name)

    def judge(self, exchange: Exchange, now: int) -> tuple[Verdict, Document | None]:
        """The verdict on one exchange, and its document where there is one to go on with."""
        if isinstance(exchange, Failure):
            return self._failure(exchange), None
        answer = exchange
        readable = answer.status < 300 and answer.status not in {204, 205}
        parsed = self._parse_answer(answer) if readable or (self._needs_document and answer.body) else None
        document = parsed if isinstance(parsed, Document) else None
        for rule in self._rules:
            if rule.holds(answer, document):
                return rule.verdict(answer, now), document
        if not readable:
            return self._status(answer, now), None
        if (wrong := self._body(answer, parsed)) is not None:
            return wrong, None
        return Verdict(action=Action.ACCEPT, code=RunReason.OK), document

    def judge_list(self, page: Listed, at: Position | None = None, *, status: int = 200) -> Verdict | None:
        """The verdict on a document without a list, unless it is the empty page that the pack takes it for."""
        if status == ACCEPTED and not page.items and not page.null_items:
            return _no_list(f"status {status}: the result is not there yet")
        if page.items is not None:
            if not page.items and at is not None and at.ids:
                return ASKED_TWICE
            return None if page.items or page.null_items or at is None else self._judge_empty(page, at)
        response = self._leg.response
        if response.items_missing is MissingItems.EMPTY or page.untold:
            against = None if at is None else self._against(page, at)
            if against is not None:
                return _no_list(f"the answer has no {response.items_path}, but {against}")
            return ASKED_TWICE if at is not None and at.ids else None
        return Verdict(
            action=Action.HALT,
            code=RunReason.SCHEMA_CHANGED,
            level="L4",
            detail=f"the answer has no {response.items_path}",
            advice=_ADVICE[RunReason.SCHEMA_CHANGED],
            confirm=True,
        )

    def silent(self, at: Position) -> Verdict | None:
        """The verdict on "no content": in the midst of a list whose total says that there is more, or for ids."""
        if at.ids:
            return Verdict(action=Action.EMPTY, code=RunReason.NO_CONTENT, confirm=True)
        more = None if at.total is None or at.passed >= at.total else f"{at.passed} of {at.total} records were read"
        return None if more is None else _no_list(f"the answer has no content, but {more}")

    def _judge_empty(self, page: Listed, at: Position) -> Verdict | None:
        """The verdict on an empty list that would end a chain of pages although its total promises more.

        What is less than a page may be a total that is not exact, or records that left meanwhile: believed when it is
        said twice. (Lists by page and offset are read again in such a case.)
        """
        pagination = self._leg.pagination
        if at.ids or pagination.type not in {PaginationType.TOKEN, PaginationType.URL} or page.has_more is not None:
            return None
        if (page.token or page.url) and pagination.empty_page is EmptyPage.CONTINUE:
            return None
        total = min((known for known in (page.total, at.total) if known), default=0)
        missing = total - at.passed
        if missing <= 0:
            return None
        if missing < (at.page_size or at.passed // max(at.page_index, 1)) and at.passed:
            return ASKED_TWICE
        return _no_list(f"the list is empty here, but {at.passed} of {total} records were read")

    def _against(self, page: Listed, at: Position) -> str | None:
        """What speaks against an empty page in an answer without a list: an error body has none either.

        The answer's own total counts, unless it is 0 where an earlier page had more; then the list's latest.
        """
        response, pagination = self._leg.response, self._leg.pagination
        following = page.token or page.url
        total = page.total or at.total
        if following and pagination.empty_page is EmptyPage.CONTINUE:
            return None  # the list goes on all the same
        if total is not None and at.passed < total:
            return f"{at.passed} of {total} records were read"
        if page.has_more:
            return "says that there is more"
        if total is not None or page.total is not None or page.has_more is not None:
            return None
        if response.total_path is not None or response.has_more_path is not None:
            return f"nothing at {response.total_path or response.has_more_path} says that it is empty"
        led_here = at.page_index > 0 and pagination.type not in {PaginationType.OFFSET, PaginationType.PAGE}
        return "the page before led to it" if led_here and not at.ids and not following else None

    def _failure(self, failure: Failure) -> Verdict:
        outcome, code = _FAULTS[failure.fault]
        known = self._leg.retry.retryable_errors
        if outcome is Outcome.L1 and failure.fault.value in _OPTIONAL and failure.fault.value not in known:
            outcome = Outcome.L2
        action = Action.RESLICE if code is RunReason.TOO_LARGE else _ACTIONS[outcome]
        return Verdict(
            action=action, code=code, level=outcome.value, detail=failure.detail, advice=_ADVICE.get(code, "")
        )

    def _status(self, answer: Answer, now: int) -> Verdict:
        status = answer.status
        if status in self._leg.retry.retryable_status and status not in {401, 407}:
            outcome, code = Outcome.L1, RunReason.THROTTLED if status == 429 else RunReason.SERVER_ERROR
        else:
            outcome, code = next(
                ((outcome, code) for statuses, outcome, code in _STATUSES if status in statuses),
                (Outcome.L2, RunReason.REQUEST_REFUSED),
            )
        return Verdict(
            action=_ACTIONS[outcome],
            code=code,
            level=_level(outcome),
            retry_after=retry_after_of(answer.headers, now) if outcome is Outcome.L1 else None,
            detail=f"status {status}: {excerpt(answer.body)}".rstrip(": "),
            advice=_ADVICE.get(code, ""),
        )

    def _parse_answer(self, answer: Answer) -> Parsed:
        if not answer.body.strip():
            return Unreadable(truncated=True, detail="no body")
        body = answer.body
        if self._decode is not None:
            try:
                body = bytes(self._decode(body, answer.content_type))
            except Exception as error:  # noqa: BLE001  other people's code: what it cannot read is unreadable
                why = f"the decoder {self._leg.response.decoder!r} failed: {type(error).__name__}: {error}"
                return Unreadable(truncated=False, detail=why)
        return parse(body, self._leg.response.format, _charset(answer), self._place, self._apart, self._outline)

    def _body(self, answer: Answer, parsed: Parsed | None) -> Verdict | None:
        """What is wrong with the body of a 200, if something is."""
        code = None
        allowed = self._leg.response.content_types
        start = answer.body[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
        if not answer.body.strip():
            code = RunReason.EMPTY_BODY
        elif (
            (allowed and not any(answer.content_type.startswith(kind.lower()) for kind in allowed))
            or start.startswith((b"<!doctype html", b"<html"))
            or (self._decode is None and self._leg.response.format is ResponseFormat.JSON and start.startswith(b"<"))
        ):
            code = RunReason.ERROR_PAGE
        elif isinstance(parsed, Unreadable):
            code = RunReason.TRUNCATED if parsed.truncated else RunReason.UNREADABLE
        if code is None:
            return None
        detail = parsed.detail if isinstance(parsed, Unreadable) else answer.content_type
        return Verdict(action=Action.RETRY, code=code, level="L1", detail=f"{detail}: {excerpt(answer.body)}")


_OPTIONAL = frozenset({"timeout", "dns", "tls", "connect", "reset", "truncated"})
"""Failures that a pack may take off the list of those worth a second attempt."""


def _no_list(detail: str) -> Verdict:
    return Verdict(
        action=Action.RETRY, code=RunReason.NO_LIST, level="L1", detail=detail, advice=_ADVICE[RunReason.NO_LIST]
    )


def _level(outcome: Outcome) -> str | None:
    return outcome.value if outcome.value.startswith("L") else None


class _Rule:
    """One `NamedRule`, compiled."""

    def __init__(self, rule: NamedRule, leg: Leg) -> None:
        self._rule = rule
        self._statuses = _statuses(rule.status)
        self._path: Path | None = None
        if rule.path is not None:
            self._path = compile_path(rule.path, leg.response.format, leg.response.namespaces)
        self._pattern: Pattern | None = pattern(rule.pattern) if rule.pattern is not None else None
        self._equals = frozenset(rule.equals)

    def holds(self, answer: Answer, document: Document | None) -> bool:
        rule = self._rule
        if self._statuses and answer.status not in self._statuses:
            return False
        if rule.content_type is not None and not answer.content_type.startswith(rule.content_type.lower()):
            return False
        if rule.header is not None and rule.header.lower() not in answer.headers:
            return False
        if self._path is not None:
            return document is not None and self._is_found(self._path, document)
        if self._pattern is not None:
            return self._pattern.matches_part(
                answer.body[: PATTERN_CHARS * 4].decode("utf-8", "replace")[:PATTERN_CHARS]
            )
        return True

    def _is_found(self, path: Path, document: Document) -> bool:
        values = path.find(document.root)
        texts = [text for text in map(_text, values) if text is not None]
        if self._equals and not self._equals & set(texts):
            return False
        if self._pattern is not None:
            return any(self._pattern.matches_part(text[:PATTERN_CHARS]) for text in texts)
        return bool(values)

    def verdict(self, answer: Answer, now: int) -> Verdict:
        rule = self._rule
        wait = parse_duration(rule.retry_after) if rule.retry_after is not None else None
        said = retry_after_of(answer.headers, now) if answer.status >= 300 else None
        return Verdict(
            action=_ACTIONS[rule.outcome],
            code=RunReason.TOKEN_EXPIRED if rule.outcome is Outcome.RESTART else RunReason.PACK_RULE,
            level="L2" if rule.outcome is Outcome.BISECT else _level(rule.outcome),
            rule=rule.name,
            retry_after=max((span for span in (wait, said) if span is not None), default=None),
            detail=f"{rule.name}: status {answer.status}: {excerpt(answer.body)}",
            advice=rule.advice,
        )


def excerpt(body: bytes) -> str:
    """The beginning of a body for people: one line, without what identifies anyone."""
    return " ".join(redacted_excerpt(body, EXCERPT_CHARS * 4).replace("\0", "\ufffd").split())[:EXCERPT_CHARS]


def _text(value: Any) -> str | None:
    return text_at(value)


def _statuses(given: Sequence[str | int]) -> frozenset[int]:
    out: set[int] = set()
    for entry in given:
        out.update(_class(entry))
    return frozenset(out)


def _class(entry: str | int) -> Iterable[int]:
    text = str(entry).lower()
    if text.endswith("xx") and text[:1].isdecimal():
        return range(int(text[0]) * 100, int(text[0]) * 100 + 100)
    return (int(text),) if text.isdecimal() else ()


def _charset(answer: Answer) -> str:
    _, _, rest = answer.headers.get("content-type", "").partition("charset=")
    return rest.partition(";")[0].strip(" \"'") or "utf-8"
