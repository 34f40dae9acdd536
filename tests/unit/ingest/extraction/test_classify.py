"""The table of chapter 12 row by row, and errors that do not look like errors."""

import pytest
from msgspec.structs import replace

from patra.ingest.extraction.body_parser import Document, read_item
from patra.ingest.extraction.classify import Action, Classifier, Verdict
from patra.ingest.extraction.response import Listed
from patra.ingest.http.client import Answer, Failure, Fault
from patra.ingest.http.request import Position
from patra.ingest.packs.sections import NamedRule, Pagination, Response, Retry
from patra.ingest.vocabulary.codes import EmptyPage, MissingItems, Operation, Outcome, PaginationType, ResponseFormat
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import MINUTE, SECOND
from tests.unit.ingest.sample_legs import leg

JSON = Response(items_path="$.items", id_path="$.id", updated_at_path="$.updated")
XML = Response(format=ResponseFormat.XML, items_path="//r", id_path="@id", updated_at_path="@u")


def answer(status: int = 200, body: bytes = b'{"items": []}', **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, headers=named, body=body, url="https://x/", elapsed=1, wire_bytes=len(body))


def judged(exchange, **given) -> Verdict:
    return Classifier(leg(**given)).judge(exchange, 0)[0]


@pytest.mark.parametrize(
    ("fault", "level", "action", "code"),
    [
        (Fault.TIMEOUT, "L1", Action.RETRY, RunReason.TIMEOUT),
        (Fault.DNS, "L1", Action.RETRY, RunReason.DNS),
        (Fault.TLS, "L1", Action.RETRY, RunReason.TLS),
        (Fault.CONNECT, "L1", Action.RETRY, RunReason.CONNECT),
        (Fault.RESET, "L1", Action.RETRY, RunReason.RESET),
        (Fault.TRUNCATED, "L1", Action.RETRY, RunReason.TRUNCATED),
        (Fault.BAD_ENCODING, "L1", Action.RETRY, RunReason.NOT_TEXT),
        (Fault.TOO_LARGE, "L2", Action.RESLICE, RunReason.TOO_LARGE),
        (Fault.UNSENDABLE, "L2", Action.FAIL, RunReason.UNSENDABLE),
        (Fault.REDIRECT_REFUSED, "L2", Action.FAIL, RunReason.REDIRECT_REFUSED),
        (Fault.HOST_REFUSED, "L4", Action.HALT, RunReason.HOST_REFUSED),
    ],
)
def test_every_failure_without_an_answer_has_its_class(
    fault: Fault, level: str, action: Action, code: RunReason
) -> None:
    verdict = judged(Failure(fault=fault, detail="d"))
    assert (verdict.level, verdict.action, verdict.code) == (level, action, code)


def test_every_fault_is_in_the_table() -> None:
    assert {judged(Failure(fault=fault, detail="")).level for fault in Fault} == {"L1", "L2", "L4"}


def test_a_pack_may_take_a_failure_off_the_list() -> None:
    assert judged(Failure(fault=Fault.TLS, detail=""), retry=Retry(retryable_errors=("timeout",))).level == "L2"


@pytest.mark.parametrize(
    ("status", "level", "action", "code"),
    [
        (400, "L2", Action.FAIL, RunReason.REQUEST_REFUSED),
        (401, "L4", Action.HALT, RunReason.UNAUTHORIZED),
        (403, "L2", Action.FAIL, RunReason.REQUEST_REFUSED),
        (404, "L2", Action.FAIL, RunReason.NOT_FOUND),
        (407, "L4", Action.HALT, RunReason.UNAUTHORIZED),
        (408, "L1", Action.RETRY, RunReason.SERVER_ERROR),
        (409, "L2", Action.FAIL, RunReason.REQUEST_REFUSED),
        (410, "L2", Action.FAIL, RunReason.NOT_FOUND),
        (414, "L2", Action.FAIL, RunReason.URI_TOO_LONG),
        (422, "L2", Action.FAIL, RunReason.REQUEST_REFUSED),
        (429, "L1", Action.RETRY, RunReason.THROTTLED),
        (500, "L1", Action.RETRY, RunReason.SERVER_ERROR),
        (501, "L2", Action.FAIL, RunReason.REQUEST_REFUSED),
        (502, "L1", Action.RETRY, RunReason.SERVER_ERROR),
        (503, "L1", Action.RETRY, RunReason.SERVER_ERROR),
        (520, "L1", Action.RETRY, RunReason.SERVER_ERROR),
        (302, "L2", Action.FAIL, RunReason.REDIRECT_REFUSED),
        (204, None, Action.EMPTY, RunReason.NO_CONTENT),
        (999, "L2", Action.FAIL, RunReason.REQUEST_REFUSED),
    ],
)
def test_every_status_has_its_class(status: int, level: str | None, action: Action, code: RunReason) -> None:
    verdict = judged(answer(status, b"text"))
    assert (verdict.level, verdict.action, verdict.code) == (level, action, code)


def test_a_4xx_is_worth_a_second_attempt_where_the_pack_says_so() -> None:
    assert judged(answer(409), retry=Retry(retryable_status=(409,))).level == "L1"
    assert judged(answer(429), retry=Retry(retryable_status=(409,))).level == "L1"
    assert judged(answer(401), retry=Retry(retryable_status=(401,))).level == "L4"


def test_retry_after_is_read_zero_included() -> None:
    assert judged(answer(429, retry_after="0")).retry_after == 0
    assert judged(answer(503, retry_after="120")).retry_after == 2 * MINUTE
    assert judged(answer(429)).retry_after is None


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", RunReason.EMPTY_BODY),
        (b"  \n", RunReason.EMPTY_BODY),
        (b"<!DOCTYPE html><html><body>Maintenance</body></html>", RunReason.ERROR_PAGE),
        (b"<HTML><h1>502</h1>", RunReason.ERROR_PAGE),
        (b"<error>no</error>", RunReason.ERROR_PAGE),
        (b'{"items": [{"id": 1}, {"id"', RunReason.TRUNCATED),
        (b'{"items": ["abc', RunReason.TRUNCATED),
        (b"Service temporarily unavailable", RunReason.UNREADABLE),
        (b'{"items": [}', RunReason.UNREADABLE),
        (b'{"items": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", RunReason.UNREADABLE),
    ],
)
def test_a_200_that_is_no_answer_is_tried_again(body: bytes, code: RunReason) -> None:
    verdict = judged(answer(200, body, content_type="application/json"), response=JSON)
    assert (verdict.level, verdict.action, verdict.code) == ("L1", Action.RETRY, code)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"<list><r id='1'/>", RunReason.TRUNCATED),
        (b"<list><r id='1'></list>", RunReason.UNREADABLE),
        (b"<html><body>sorry</body></html>", RunReason.ERROR_PAGE),
        (b"no xml", RunReason.UNREADABLE),
    ],
)
def test_broken_xml_is_tried_again(body: bytes, code: RunReason) -> None:
    verdict = judged(answer(200, body), response=XML)
    assert verdict.level == "L1"
    if code is not RunReason.UNREADABLE:
        assert verdict.code is code


def test_a_content_type_that_the_pack_does_not_name_is_an_error_page() -> None:
    picky = Response(items_path="$.items", id_path="$.id", updated_at_path="$.u", content_types=["application/json"])
    assert judged(answer(200, b"{}", content_type="text/plain"), response=picky).code is RunReason.ERROR_PAGE
    assert (
        judged(answer(200, b"{}", content_type="application/json; charset=utf-8"), response=picky).code is RunReason.OK
    )


def test_json_served_as_html_is_still_json() -> None:
    assert judged(answer(200, b'{"items": []}', content_type="text/html")).code is RunReason.OK


def test_an_entity_bomb_is_refused() -> None:
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaa">' + b"".join(
        b'<!ENTITY %c "%s">' % (c, b"&%c;" % (c - 1) * 10) for c in range(98, 110)
    )
    verdict, document = Classifier(leg(response=XML)).judge(answer(200, bomb + b"]><list>&m;</list>"), 0)
    assert verdict.level == "L1" or len("".join(document.root.itertext())) < 1000


RULES = [
    NamedRule(name="viewer", status=[400], pattern="External viewer error", outcome=Outcome.L1, retry_after="PT10S"),
    NamedRule(
        name="expired", status=[404], path="$.message[0].type", equals=["cursor-invalid"], outcome=Outcome.RESTART
    ),
    NamedRule(name="quota", status=["4xx"], header="X-Blocked", outcome=Outcome.L4, advice="call them"),
    NamedRule(name="inside", path="$.ERROR", outcome=Outcome.L2),
    NamedRule(name="none", path="$.message", pattern="(?i)not found", outcome=Outcome.EMPTY),
    NamedRule(name="over", status=[416], outcome=Outcome.END),
]


@pytest.mark.parametrize(
    ("given", "rule", "level", "action"),
    [
        (answer(400, b"... External viewer error: Timeout"), "viewer", "L1", Action.RETRY),
        (answer(404, b'{"message": [{"type": "cursor-invalid"}]}'), "expired", None, Action.RESTART),
        (answer(403, b"", x_blocked="1"), "quota", "L4", Action.HALT),
        (answer(200, b'{"ERROR": "bad term", "items": []}'), "inside", "L2", Action.FAIL),
        (answer(200, b'{"message": "Not Found"}'), "none", None, Action.EMPTY),
        (answer(416, b"past the end"), "over", None, Action.END),
    ],
)
def test_the_packs_rules_go_first(given: Answer, rule: str, level: str | None, action: Action) -> None:
    verdict = judged(given, errors=RULES)
    assert (verdict.rule, verdict.level, verdict.action) == (rule, level, action)


def test_a_rule_says_how_long_to_wait_unless_the_provider_says_longer() -> None:
    body = b"External viewer error"
    assert judged(answer(400, body), errors=RULES).retry_after == 10 * SECOND
    assert judged(answer(400, body, retry_after="60"), errors=RULES).retry_after == MINUTE


def test_an_oai_error_in_a_200_is_found_by_its_path() -> None:
    oai = Response(
        format=ResponseFormat.XML,
        items_path="//o:record",
        id_path="o:header/o:identifier",
        updated_at_path="o:header/o:datestamp",
        namespaces={"o": "http://www.openarchives.org/OAI/2.0/"},
    )
    rules = [
        NamedRule(name="no_records", path="//o:error/@code", equals=["noRecordsMatch"], outcome=Outcome.EMPTY),
        NamedRule(name="expired", path="//o:error/@code", equals=["badResumptionToken"], outcome=Outcome.RESTART),
        NamedRule(name="other", path="//o:error", outcome=Outcome.L2),
    ]
    body = b'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><error code="%s">x</error></OAI-PMH>'
    found = [
        judged(answer(200, body % code), response=oai, errors=rules).rule
        for code in (b"noRecordsMatch", b"badResumptionToken", b"badVerb")
    ]
    assert found == ["no_records", "expired", "other"]


def test_a_document_without_its_list_is_a_changed_schema_that_is_confirmed_first() -> None:
    classifier = Classifier(leg())
    verdict = classifier.judge_list(Listed(items=None))
    assert verdict is not None
    assert (verdict.level, verdict.action, verdict.confirm) == ("L4", Action.HALT, True)
    assert "$.items" in verdict.detail
    assert classifier.judge_list(Listed(items=[])) is None
    lenient = Response(items_path="$.items", id_path="$.id", updated_at_path="$.u", items_missing=MissingItems.EMPTY)
    assert Classifier(leg(response=lenient)).judge_list(Listed(items=None)) is None


def no_list(total=None, has_more=None, token=None, *, path="$.total", more_path=None, ids=(), index=0, passed=0,
            known=None, untold=False, **paging) -> Verdict | None:  # fmt: skip
    response = Response(
        items_path="$.items",
        id_path="$.id",
        updated_at_path="$.u",
        total_path=path,
        has_more_path=more_path,
        items_missing=MissingItems.FAIL if untold else MissingItems.EMPTY,
    )
    pagination = Pagination(**({"type": PaginationType.TOKEN, "page_size": 10, "next_token_path": "$.next"} | paging))
    at = Position(source="s", endpoint="e", operation=Operation.HARVEST, now=0, page_index=index, ids=ids, passed=passed,
            total=known)  # fmt: skip
    page = Listed(items=None, untold=untold, total=total, has_more=has_more, token=token)
    return Classifier(leg(response=response, pagination=pagination)).judge_list(page, at)


@pytest.mark.parametrize(
    "said",
    [
        {"total": 0},
        {"total": 0, "has_more": False, "more_path": "$.more"},
        {"passed": 20, "known": 20, "index": 2},
        {"total": 20, "passed": 20, "known": 21, "index": 2},  # one was deleted while the list was read
        {"path": None},  # a first page, and the pack names nothing by which a good answer is known
        {"path": None, "index": 3, "type": PaginationType.PAGE},
        {"path": None, "more_path": "$.more", "has_more": False},
        {"token": "t", "passed": 10, "known": 30, "index": 1, "empty_page": EmptyPage.CONTINUE},
        {"total": 0, "untold": True},
    ],
)
def test_an_answer_without_a_list_is_an_empty_page_where_nothing_speaks_against_it(said) -> None:
    assert no_list(**said) is None


@pytest.mark.parametrize(
    ("said", "because"),
    [
        ({"passed": 386, "known": 1000, "index": 2}, "386 of 1000 records were read"),
        ({"total": 1000, "passed": 386, "known": 386, "index": 2}, "386 of 1000"),
        ({"total": 0, "passed": 386, "known": 1000, "index": 2}, "386 of 1000"),
        ({"total": 1000, "token": "t"}, "0 of 1000"),
        ({"total": 0, "has_more": True}, "says that there is more"),
        ({}, "nothing at $.total says that it is empty"),
        ({"ids": ("1", "2")}, "nothing at $.total"),
        ({"path": None, "more_path": "$.more"}, "nothing at $.more"),
        ({"path": None, "index": 1}, "the page before led to it"),
        ({"path": None, "index": 1, "type": PaginationType.TIME}, "the page before led to it"),
        ({"untold": True, "passed": 386, "known": 1000, "index": 2}, "386 of 1000"),
    ],
)
def test_an_answer_without_a_list_is_tried_again_where_something_speaks_against_an_empty_page(said, because) -> None:
    verdict = no_list(**said)
    assert verdict is not None
    assert (verdict.code, verdict.level, verdict.action) == (RunReason.NO_LIST, "L1", Action.RETRY)
    assert because in verdict.detail
    assert "outcome: END" in verdict.advice


def test_that_none_of_the_ids_is_known_is_believed_when_it_is_said_twice() -> None:
    verdict = no_list(path=None, ids=("1", "2"))
    assert verdict is not None
    assert (verdict.action, verdict.confirm) == (Action.ACCEPT, True)


def test_no_content_ends_no_list_whose_total_says_that_there_is_more() -> None:
    at = Position(source="s", endpoint="e", operation=Operation.HARVEST, now=0, passed=10, total=30)
    verdict = Classifier(leg()).silent(at)
    assert verdict is not None
    assert (verdict.code, verdict.action) == (RunReason.NO_LIST, Action.RETRY)
    assert Classifier(leg()).silent(replace(at, passed=30)) is None
    assert Classifier(leg()).silent(replace(at, total=None)) is None


def test_the_excerpt_names_nobody() -> None:
    verdict = judged(answer(400, b"bad key api_key=SECRET123 for jane@example.org"))
    assert "SECRET123" not in verdict.detail
    assert "jane@" not in verdict.detail


def test_a_good_answer_comes_with_its_document() -> None:
    verdict, document = Classifier(leg()).judge(answer(200, b'\xef\xbb\xbf{"items": [1]}'), 0)
    assert verdict.action is Action.ACCEPT
    assert isinstance(document, Document)
    assert [read_item(item) for item in document.root["items"]] == [1]


def test_verdicts_that_stop_something_say_what_to_do() -> None:
    for exchange in (answer(401), answer(414), Failure(fault=Fault.HOST_REFUSED, detail="")):
        assert judged(exchange).advice
