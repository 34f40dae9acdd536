"""An archive behind an HTTP endpoint: records go out as one POST, and its answer says what became of each (F21).

The body is `{"records": [{"record": …, "payload": …, "payloadDigest": …}, …]}`. An endpoint answers 2xx when it has all
of them, or 2xx with `{"results": [{"recordKey": …, "status": "written" | "retry" | "refused", "code": …}, …]}` when
their fates differ. 400, 409, 413 and 422 speak of a record: a batch that gets one is sent again in halves until the
record is found, and that one is refused. Whatever else comes back (408, 429, 5xx, but also 401, 404 or a redirect)
speaks of the endpoint and asks for another attempt of all; so does a result with an unknown status, an object that
cannot be read, and an answer that is too long or takes too long.
"""

import time
from collections.abc import Sequence

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
REFUSALS = frozenset({400, 409, 413, 422})


class Result(msgspec.Struct, frozen=True):
    recordKey: str  # noqa: N815  name of the specification
    status: str
    code: str = ""


class Results(msgspec.Struct, frozen=True):
    results: list[Result] = []


class _Problem(msgspec.Struct, frozen=True):
    code: str = ""


_RETRIES = {
    R.ARCHIVE_TIMEOUT.value: R.ARCHIVE_TIMEOUT,
    R.ARCHIVE_RATE_LIMITED.value: R.ARCHIVE_RATE_LIMITED,
}


class HttpArchive:
    """Posts records to a URL."""

    def __init__(self, url: str, *, connect: float = CONNECT_SECONDS, read: float = READ_SECONDS) -> None:
        self._url = url
        self._read = read
        self._pool = urllib3.PoolManager(maxsize=4, retries=False, timeout=urllib3.Timeout(connect=connect, read=read))

    def write(self, records: Sequence[Record]) -> list[Outcome]:
        if not records:
            return []
        body = msgspec.json.encode({"records": [as_sent(record) for record in records]})
        try:
            status, answer = self._post(body)
        except (urllib3.exceptions.ReadTimeoutError, _TooSlowError):
            return [Again(R.ARCHIVE_TIMEOUT)] * len(records)
        except urllib3.exceptions.HTTPError:
            return [Again(R.ARCHIVE_UNAVAILABLE)] * len(records)
        match status:
            case _ if 200 <= status < 300:
                return _results(records, answer)
            case 408:
                return [Again(R.ARCHIVE_TIMEOUT)] * len(records)
            case 429:
                return [Again(R.ARCHIVE_RATE_LIMITED)] * len(records)
            case _ if status in REFUSALS and len(records) > 1:
                half = len(records) // 2
                return self.write(records[:half]) + self.write(records[half:])
            case _ if status in REFUSALS:
                return [Never(_code(answer))]
            case _:
                return [Again(R.ARCHIVE_UNAVAILABLE)] * len(records)

    def _post(self, body: bytes) -> tuple[int, bytes]:
        """The status and body of the answer, bounded in bytes and in time."""
        until = time.monotonic() + self._read
        headers = {"Content-Type": "application/json"}
        answer = self._pool.request("POST", self._url, body=body, headers=headers, preload_content=False)
        try:
            data = _data(answer, until)
        except BaseException:
            answer.close()
            raise
        answer.release_conn()
        return answer.status, data

    def close(self) -> None:
        self._pool.clear()


class _TooSlowError(Exception):
    """Each byte came in time, and the answer did not."""


def _data(answer: urllib3.BaseHTTPResponse, until: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := answer.read1(65536):
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise urllib3.exceptions.ProtocolError("the answer is too long")
        if time.monotonic() > until:
            raise _TooSlowError
    return b"".join(parts)


def _results(records: Sequence[Record], body: bytes) -> list[Outcome]:
    """What the endpoint says of each record; of one that it does not mention, that it is written."""
    try:
        said = {result.recordKey: result for result in msgspec.json.decode(body, type=Results).results}
    except (msgspec.MsgspecError, UnicodeDecodeError):
        if body.lstrip().startswith(b"{"):  # it meant to say something
            return [Again(R.ARCHIVE_UNAVAILABLE)] * len(records)
        said = {}
    return [_outcome(said.get(record.key)) for record in records]


def _outcome(result: Result | None) -> Outcome:
    match result:
        case None | Result(status="written"):
            return Written()
        case Result(status="refused"):
            return Never(result.code or R.ARCHIVE_REFUSED.value)
        case _:
            return Again(_RETRIES.get(result.code, R.ARCHIVE_UNAVAILABLE))


def _code(body: bytes) -> str:
    """The `code` of a problem document, where the refusal carries one."""
    try:
        return msgspec.json.decode(body, type=_Problem).code or R.ARCHIVE_REFUSED.value
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return R.ARCHIVE_REFUSED.value
