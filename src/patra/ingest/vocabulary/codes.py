"""Every closed list of codes of packs, snapshots and `ing_*` rows: the system dictionary (ch. 3.2, 3.3.3).

A code is text, is stored as its text, and explains itself (`.text`). The dictionary tables `sys_dict_*` are seeded from
here; what an operator disables there stops compiling.
"""

from enum import StrEnum
from typing import Self

import msgspec


class Code(StrEnum):
    """Base of every list: the code is the value, `text` says what it means."""

    _value_: str
    text: str

    def __new__(cls, code: str, text: str) -> Self:
        member = str.__new__(cls, code)
        member._value_ = code
        member.text = text
        return member


class Operation(Code):
    HARVEST = "HARVEST", "move the forward watermark up to now minus the safety lag"
    BACKFILL = "BACKFILL", "read history again in a namespace of its own"
    UPDATE = "UPDATE", "fetch known records again by their ids"


class HttpMethod(Code):
    GET = "GET", "parameters in the query"
    POST = "POST", "parameters in the query and in a body"
    PUT = "PUT", "as POST; rarely used for reading"
    HEAD = "HEAD", "headers only"


class BodyKind(Code):
    NONE = "NONE", "no body"
    FORM = "FORM", "application/x-www-form-urlencoded from `fields`"
    JSON = "JSON", "application/json from `json`"
    XML = "XML", "application/xml from `text`; rendered values are escaped"
    TEXT = "TEXT", "text/plain from `text`"


class AuthType(Code):
    NONE = "NONE", "anonymous"
    API_KEY = "API_KEY", "the secret `apiKey` as a header, a query parameter or a body field"
    BEARER = "BEARER", "the secret `token` as `Authorization: Bearer …`"
    OAUTH2 = "OAUTH2", "client credentials: `clientId` and `clientSecret` are exchanged for a token"
    CUSTOM = "CUSTOM", "a signing hook of the program sets what is needed"


class AuthLocation(Code):
    HEADER = "HEADER", "in a request header"
    QUERY = "QUERY", "in the query"
    BODY = "BODY", "in a form or JSON body"


class ClientAuth(Code):
    BASIC = "BASIC", "client id and secret in an Authorization header"
    BODY = "BODY", "client id and secret in the body of the token request"


class Role(Code):
    SEARCH = "SEARCH", "lists records, or the ids of records"
    DETAIL = "DETAIL", "gives records by id"
    METRICS = "METRICS", "gives counts only"


class Access(Code):
    PUBLIC = "PUBLIC", "may be read without a credential"
    RESTRICTED = "RESTRICTED", "must not be read without a credential"


class PaginationType(Code):
    OFFSET = "OFFSET", "offset and limit"
    PAGE = "PAGE", "page number and size"
    TOKEN = "TOKEN", "the answer holds a token that asks for the next page"
    URL = "URL", "the answer holds the URL of the next page, in its body or its Link header"
    TIME = "TIME", "no pages: the next request starts at the latest instant seen"


class Step(Code):
    REQUESTED = "REQUESTED", "the offset grows by the page size that was asked for"
    RETURNED = "RETURNED", "the offset grows by the records that came back"


class EmptyPage(Code):
    END = "END", "an empty page is the end of the list"
    PROBE = "PROBE", "an empty page is asked for once more before it is believed"
    CONTINUE = "CONTINUE", "an empty page says nothing; only the token, the URL or the total ends the list"


class Verify(Code):
    """Whether a list that no total counts is read again before it is believed (ruling I10)."""

    ONCE = "ONCE", "its end is believed; the coverage says that it is not proven"
    TWICE = "TWICE", "two readings, in pages of different sizes, must give the same records"


class ShortPage(Code):
    END = "END", "fewer records than the page size end the list"
    CONTINUE = "CONTINUE", "a short page says nothing (page sizes that change, filters applied after paging)"
    SUPPRESSED = "SUPPRESSED", "the provider withholds records: their places count as walked, up to the total"


class MissedTicks(Code):
    ONCE = "ONCE", "the latest tick stands for all that were missed"
    ALL = "ALL", "each missed tick is made up, the oldest first, each up to its own instant"
    NONE = "NONE", "a tick that is more than five minutes late is skipped"


class TotalMeaning(Code):
    EXACT = "EXACT", "as many as the list has: a window that gives fewer is incomplete"
    ESTIMATE = "ESTIMATE", "about as many; `totalTolerance` says by which share it may be too high"
    UPPER_BOUND = "UPPER_BOUND", "no more than this; fewer say nothing"
    NONE = "NONE", "a number that promises nothing; it is used for estimates only"


class RepeatedToken(Code):
    END = "END", "the token that was sent coming back is the end of the list (Solr's cursorMark)"
    CONTINUE = "CONTINUE", "the token stays the same while the list moves on (Crossref)"
    FAIL = "FAIL", "a repeated token or URL is a loop: stop and say so"


class Align(Code):
    MIN = "min", "window edges on whole minutes"
    HOUR = "hour", "window edges on whole hours"
    DAY = "day", "window edges on UTC midnight"


class Bounds(Code):
    INCLUSIVE = "inclusive", "the provider also gives what lies on its upper bound"
    EXCLUSIVE = "exclusive", "the provider gives only what lies before its upper bound"


class Precision(Code):
    DAY = "day", "the provider compares days"
    MINUTE = "minute", "the provider compares minutes"
    SECOND = "second", "the provider compares seconds"
    MILLISECOND = "millisecond", "the provider compares milliseconds"


class Overshoot(Code):
    CLAMP = "CLAMP", "a window past now minus the safety lag is cut there"
    REJECT = "REJECT", "a window past now minus the safety lag is refused"


class CursorType(Code):
    TIME = "TIME", "an instant"
    ID = "ID", "the last id that was looked at"
    TOKEN = "TOKEN", "a page token; a checkpoint inside a run, never a watermark"


class NamespaceScope(Code):
    GLOBAL = "GLOBAL", "one cursor for every endpoint of the source"
    EXPR = "EXPR", "one cursor for each endpoint and choice of parameters"
    CUSTOM = "CUSTOM", "a cursor of its own for one plan or campaign"


class Direction(Code):
    FORWARD = "FORWARD", "towards now"
    BACKFILL = "BACKFILL", "towards the past"


class ResponseFormat(Code):
    JSON = "JSON", "JSONPath (RFC 9535)"
    XML = "XML", "XPath 1.0"


class MissingItems(Code):
    EMPTY = "EMPTY", "an answer without the list is an answer without records"
    FAIL = "FAIL", "an answer without the list is not what was expected: the schema changed (L4)"


class FieldType(Code):
    TEXT = "TEXT", "text"
    INT = "INT", "an integer"
    NUMBER = "NUMBER", "a number"
    BOOL = "BOOL", "true or false"
    INSTANT = "INSTANT", "an instant; partial dates mean the earliest instant they can (ruling I7)"
    DATE = "DATE", "a date with its precision: year, month or day"
    JSON = "JSON", "any JSON value, as it came"


class Outcome(Code):
    L1 = "L1", "transient: wait and try again"
    L2 = "L2", "the request is at fault: stop this batch"
    L3 = "L3", "the record is at fault: quarantine it and go on"
    L4 = "L4", "fatal: stop the source or endpoint until a person has looked"
    EMPTY = "EMPTY", "no records and nothing wrong"
    END = "END", "the list ends here"
    RESTART = "RESTART", "the token has expired: start the slice again from its confirmed point"
    BISECT = "BISECT", "the window holds too much for this request: it is cut in two; the smallest window fails (L2)"


class RetryPolicy(Code):
    EXPONENTIAL_JITTER = "exponential_jitter", "doubling delays with jitter"
    FIXED = "fixed", "the same delay every time"
    NONE = "none", "no second attempt"


class ResetKind(Code):
    SECONDS = "SECONDS", "seconds from now"
    EPOCH_S = "EPOCH_S", "seconds since 1970"
    EPOCH_MS = "EPOCH_MS", "milliseconds since 1970"
    HTTP_DATE = "HTTP_DATE", "an HTTP date"


class RateScope(Code):
    ENDPOINT = "ENDPOINT", "one bucket for each endpoint"
    SOURCE = "SOURCE", "all endpoints of the source share one bucket"
    HOST = "HOST", "one bucket for each host (sources whose base URL is a parameter)"


class NullPolicy(Code):
    OMIT = "omit", "a parameter without a value is left out"
    EMPTY = "empty", "a parameter without a value is sent empty"
    FAIL = "fail", "a parameter without a value refuses the request"


class ParamLocation(Code):
    NONE = "NONE", "only for expressions: `${params.name}`"
    QUERY = "QUERY", "placed in the query"
    HEADER = "HEADER", "placed in a header"
    BODY = "BODY", "placed in a form or JSON body"


class Dimension(Code):
    AUTO = "AUTO", "time where the endpoint filters by time, else pages; ids for UPDATE"
    TIME = "TIME", "windows of time"
    PAGE = "PAGE", "ranges of pages"
    ID = "ID", "lists of ids"


class OnEqual(Code):
    KEEP = "KEEP", "the stored record stays, unless a higher version comes"
    CONTENT = "CONTENT", "other content is newer, in the order of fetching"


class UpdateTime(Code):
    CHANGED = "CHANGED", "it moves with every change of the record"
    REVISED = "REVISED", "the day or the version of a revision: two changes may share it"
    PUBLISHED = "PUBLISHED", "the date of publication: it does not move when the record changes"
    NONE = "NONE", "the source reports none: only the content says whether a record is new"


class MissingIds(Code):
    QUARANTINE = "QUARANTINE", "an id without a record is kept with a reason"
    IGNORE = "IGNORE", "an id without a record is counted and forgotten"
    DELETED = "DELETED", "an id that the provider answers with a rule of outcome EMPTY is a record that it deleted"
    ALIAS = "ALIAS", "a record under another id than the one that was asked for makes that an alias of it"


class DictType(msgspec.Struct, frozen=True, kw_only=True):
    """One type of the system dictionary: its code, what it lists, and other spellings that mean one of its items."""

    code: str
    items: type[Code]
    aliases: dict[str, Code] = {}


DICTIONARY: tuple[DictType, ...] = (
    DictType(code="reg_on_equal", items=OnEqual),
    DictType(code="reg_update_time", items=UpdateTime),
    DictType(code="reg_total_meaning", items=TotalMeaning),
    DictType(code="reg_window_bounds", items=Bounds),
    DictType(code="reg_window_precision", items=Precision),
    DictType(code="ing_operation", items=Operation),
    DictType(code="http_method", items=HttpMethod),
    DictType(code="http_body_kind", items=BodyKind),
    DictType(code="reg_auth_type", items=AuthType, aliases={"APIKEY": AuthType.API_KEY, "OAUTH": AuthType.OAUTH2}),
    DictType(code="reg_auth_location", items=AuthLocation),
    DictType(code="reg_client_auth", items=ClientAuth),
    DictType(code="reg_endpoint_role", items=Role),
    DictType(code="reg_endpoint_access", items=Access),
    DictType(
        code="reg_pagination_type",
        items=PaginationType,
        aliases={"CURSOR": PaginationType.TOKEN, "LINK": PaginationType.URL, "NEXT_URL": PaginationType.URL},
    ),
    DictType(code="reg_pagination_step", items=Step),
    DictType(code="reg_empty_page", items=EmptyPage),
    DictType(code="reg_short_page", items=ShortPage),
    DictType(code="reg_verify", items=Verify),
    DictType(code="reg_missed_ticks", items=MissedTicks),
    DictType(code="reg_repeated_token", items=RepeatedToken),
    DictType(code="reg_window_align", items=Align, aliases={"minute": Align.MIN}),
    DictType(code="reg_window_overshoot", items=Overshoot),
    DictType(code="ing_cursor_type", items=CursorType),
    DictType(code="ing_namespace_scope", items=NamespaceScope),
    DictType(code="ing_cursor_direction", items=Direction),
    DictType(code="reg_response_format", items=ResponseFormat),
    DictType(code="reg_missing_items", items=MissingItems),
    DictType(code="reg_field_type", items=FieldType),
    DictType(code="ing_outcome", items=Outcome),
    DictType(code="reg_retry_policy", items=RetryPolicy),
    DictType(code="reg_reset_kind", items=ResetKind),
    DictType(code="reg_rate_scope", items=RateScope),
    DictType(code="reg_null_policy", items=NullPolicy),
    DictType(code="reg_param_location", items=ParamLocation),
    DictType(code="ing_dimension", items=Dimension),
    DictType(code="reg_missing_ids", items=MissingIds),
)


def dict_type(items: type[StrEnum]) -> DictType | None:
    """The dictionary type that an enum of codes stands for."""
    return next((entry for entry in DICTIONARY if entry.items is items), None)
