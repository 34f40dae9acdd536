"""An archive behind an HTTP endpoint: records go out as one POST, and its answer says what became of each (F21).

The body is `{"records": [{"record": …, "payload": …, "payloadDigest": …}, …]}`. An endpoint answers 2xx when it has all
of them, or 2xx with `{"results": [{"recordKey": …, "status": "written" | "retry" | "refused", "code": …}, …]}` when
their fates differ; results name every record, and one that they do not name is sent again, since nobody confirmed it
(§3.8.29). 400, 409, 413 and 422 speak of a record: a batch that gets one is sent again in halves until the record is
found, and that one is refused. Whatever else comes back (408, 429, 5xx, but also 401, 404 or a redirect) speaks of the
endpoint and asks for another attempt of all; so does a result with an unknown status, an object that cannot be read, a
page of HTML, and an answer that is too long or takes too long. After 500 and 502 the halves are tried at once, as long
as some of them are taken: one record that an endpoint stumbles over shall not cost the others their 15 minutes.

One call ends within the time that one answer may take, halves and all: what was not reached by then is tried again. The
next call then begins with smaller parts, so that it gets further.
"""

import re
import time
from collections.abc import Callable, Sequence

import msgspec
import urllib3

from patra.attribution.archive import Again, Never, Outcome, Written, as_sent
from patra.attribution.reasons import R
from patra.attribution.records import Record

CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
"""For the answer to begin, and for it to end."""
MOST_BYTES = 4 * 1024 * 1024
"""Of an answer; results of 500 records are a fortieth of it."""
MOST_RECORDS = 1000
"""Of one request."""
REFUSALS = frozenset({400, 409, 413, 422})
STUMBLES = frozenset({500, 502})
HOPE = 8
"""How often in a row a batch that an endpoint stumbles over is cut in halves before it counts as down."""


class Result(msgspec.Struct, frozen=True):
    recordKey: str  # noqa: N815  name of the specification
    status: str
    code: str = ""


class Results(msgspec.Struct, frozen=True):
    results: list[Result] | msgspec.UnsetType = msgspec.UNSET


class _Problem(msgspec.Struct, frozen=True):
    code: str = ""


_RETRIES = {
    R.ARCHIVE_TIMEOUT.value: R.ARCHIVE_TIMEOUT,
    R.ARCHIVE_RATE_LIMITED.value: R.ARCHIVE_RATE_LIMITED,
}


class HttpArchive:
    """Posts records to a URL."""

    def __init__(
        self,
        url: str,
        *,
        key: str = "",
        connect: float = CONNECT_SECONDS,
        read: float = READ_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._connect = connect
        self._read = read
        self._monotonic = monotonic
        self._pool = urllib3.PoolManager(maxsize=4, retries=False)
        self._part = MOST_RECORDS
        self._refused: list[int] = []
        self._hope = HOPE

    def write(self, records: Sequence[Record]) -> list[Outcome]:
        self._refused, self._hope = [], HOPE
        end = self._monotonic() + self._connect + self._read
        outcomes = self._write(records, end)
        if not self._refused:
            self._part = min(2 * self._part, MOST_RECORDS)
        elif self._monotonic() >= end:
            self._part = max(min(self._refused) // 2, 1)
        return outcomes

    def _write(self, records: Sequence[Record], end: float) -> list[Outcome]:
        """Write records before an instant; those of a group of which one must be tried again are not sent after it."""
        if not records:
            return []
        if len(records) > self._part:
            return self._in_halves(records, end)
        left = end - self._monotonic()
        if left <= 0:
            return [Again(R.ARCHIVE_TIMEOUT)] * len(records)
        body = msgspec.json.encode({"records": [as_sent(record) for record in records]})
        try:
            status, answer = self._post(body, left)
        except (urllib3.exceptions.ReadTimeoutError, _TooSlowError):
            return [Again(R.ARCHIVE_TIMEOUT)] * len(records)
        except urllib3.exceptions.HTTPError:
            return [Again(R.ARCHIVE_UNAVAILABLE)] * len(records)
        match status:
            case _ if 200 <= status < 300:
                self._hope = HOPE
                return _results(records, answer)
            case 408:
                return [Again(R.ARCHIVE_TIMEOUT)] * len(records)
            case 429:
                return [Again(R.ARCHIVE_RATE_LIMITED)] * len(records)
            case _ if status in REFUSALS and len(records) > 1:
                self._refused.append(len(records))
                return self._in_halves(records, end)
            case _ if status in STUMBLES and len(records) > 1 and self._hope:
                self._hope -= 1
                return self._in_halves(records, end)
            case _ if status in REFUSALS:
                return [Never(_code(answer))]
            case _:
                return [Again(R.ARCHIVE_UNAVAILABLE)] * len(records)

    def _in_halves(self, records: Sequence[Record], end: float) -> list[Outcome]:
        """Find the record that is in the way, so that it does not take the others along."""
        half = len(records) // 2
        first = self._write(records[:half], end)
        waiting = {
            record.group: outcome
            for record, outcome in zip(records[:half], first, strict=True)
            if isinstance(outcome, Again)
        }
        ready = [record for record in records[half:] if record.group not in waiting]
        second = iter(self._write(ready, end))
        return first + [waiting.get(record.group) or next(second) for record in records[half:]]

    def _post(self, body: bytes, left: float) -> tuple[int, bytes]:
        """The status and body of the answer, bounded in bytes and in time."""
        read = min(self._read, left)
        until = self._monotonic() + read
        answer = self._pool.request(
            "POST",
            self._url,
            body=body,
            headers=self._headers,
            timeout=urllib3.Timeout(connect=min(self._connect, left), read=read),
            preload_content=False,
        )
        try:
            data = _data(answer, until, self._monotonic)
        except BaseException:
            answer.close()
            raise
        answer.release_conn()
        return answer.status, data

    def close(self) -> None:
        self._pool.clear()


class _TooSlowError(Exception):
    """Each byte came in time, and the answer did not."""


def _data(answer: urllib3.BaseHTTPResponse, until: float, monotonic: Callable[[], float]) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := answer.read1(65536):
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise urllib3.exceptions.ProtocolError("the answer is too long")
        if monotonic() > until:
            raise _TooSlowError
    return b"".join(parts)


def _results(records: Sequence[Record], body: bytes) -> list[Outcome]:
    """What the endpoint says of each record; without results its 2xx says that all are written."""
    try:
        results = msgspec.json.decode(body, type=Results).results
    except (msgspec.MsgspecError, UnicodeDecodeError):
        if body.lstrip().startswith((b"{", b"<")):  # it meant to say something, or somebody else did
            return [Again(R.ARCHIVE_UNAVAILABLE)] * len(records)
        results = msgspec.UNSET
    if results is msgspec.UNSET:
        return [Written()] * len(records)
    said = {result.recordKey: result for result in results}
    return [_outcome(said.get(record.key)) for record in records]


def _outcome(result: Result | None) -> Outcome:
    match result:
        case Result(status="written"):
            return Written()
        case Result(status="refused", code=code):
            return Never(_legible(code))
        case Result(code=code):
            return Again(_RETRIES.get(code, R.ARCHIVE_UNAVAILABLE))
        case None:
            return Again(R.ARCHIVE_UNAVAILABLE)


def _code(body: bytes) -> str:
    """The `code` of a problem document, where the refusal carries one."""
    try:
        return _legible(msgspec.json.decode(body, type=_Problem).code)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return R.ARCHIVE_REFUSED.value


def _legible(code: str) -> str:
    """A code as the store and the journal can keep it; one that is none is told by our own."""
    return code if _CODE(code) else R.ARCHIVE_REFUSED.value


_CODE = re.compile(r"[A-Za-z0-9._:-]{1,128}").fullmatch
