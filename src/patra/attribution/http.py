"""An archive behind an HTTP endpoint: records go out as one POST, and its answer says what became of each (F21).

The body is `{"records": [{"record": …, "payload": …, "payloadDigest": …}, …]}`. An endpoint answers 2xx when it has all
of them, or 2xx with `{"results": [{"recordKey": …, "status": "written" | "retry" | "refused", "code": …}, …]}` when
their fates differ. 408, 429 and 5xx ask for another attempt of all; another 4xx refuses a single record, so a batch
that gets one is sent again in halves until the record is found.
"""

from collections.abc import Sequence

import msgspec
import urllib3

from patra.attribution.archive import Again, Never, Outcome, Written, as_sent
from patra.attribution.reasons import R
from patra.attribution.records import Record

CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0


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
        self._pool = urllib3.PoolManager(maxsize=4, retries=False, timeout=urllib3.Timeout(connect=connect, read=read))

    def write(self, records: Sequence[Record]) -> list[Outcome]:
        if not records:
            return []
        body = msgspec.json.encode({"records": [as_sent(record) for record in records]})
        try:
            answer = self._pool.request("POST", self._url, body=body, headers={"Content-Type": "application/json"})
        except urllib3.exceptions.ReadTimeoutError:
            return [Again(R.ARCHIVE_TIMEOUT)] * len(records)
        except urllib3.exceptions.HTTPError:
            return [Again(R.ARCHIVE_UNAVAILABLE)] * len(records)
        match answer.status:
            case status if 200 <= status < 300:
                return _results(records, answer.data)
            case 408:
                return [Again(R.ARCHIVE_TIMEOUT)] * len(records)
            case 429:
                return [Again(R.ARCHIVE_RATE_LIMITED)] * len(records)
            case status if 400 <= status < 500 and len(records) > 1:
                half = len(records) // 2
                return self.write(records[:half]) + self.write(records[half:])
            case status if 400 <= status < 500:
                return [Never(_code(answer.data))]
            case _:
                return [Again(R.ARCHIVE_UNAVAILABLE)] * len(records)

    def close(self) -> None:
        self._pool.clear()


def _results(records: Sequence[Record], body: bytes) -> list[Outcome]:
    """What the endpoint says of each record; of one that it does not mention, that it is written."""
    try:
        said = {result.recordKey: result for result in msgspec.json.decode(body, type=Results).results}
    except (msgspec.MsgspecError, UnicodeDecodeError):
        said = {}
    return [_outcome(said.get(record.key)) for record in records]


def _outcome(result: Result | None) -> Outcome:
    match result:
        case Result(status="retry"):
            return Again(_RETRIES.get(result.code, R.ARCHIVE_UNAVAILABLE))
        case Result(status="refused"):
            return Never(result.code or R.ARCHIVE_REFUSED.value)
        case _:
            return Written()


def _code(body: bytes) -> str:
    """The `code` of a problem document, where the refusal carries one."""
    try:
        return msgspec.json.decode(body, type=_Problem).code or R.ARCHIVE_REFUSED.value
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return R.ARCHIVE_REFUSED.value
