"""An archive behind an HTTP endpoint: records go out as one POST, and its answer says what became of each (F21).

The body is `{"records": [{"record": …, "payload": …, "payloadDigest": …}, …]}`. An endpoint answers 2xx when it has all
of them, or 2xx with `{"results": [{"recordKey": …, "status": "written" | "retry" | "refused", "code": …}, …]}` when
their results differ; results name every record, and one that they do not name is sent again, since nobody confirmed it
(§3.8.29). 400, 409, 413 and 422 concern a record: a batch that gets one is sent again in halves until the record is
found, and that one is refused. Whatever else comes back (408, 429, 5xx, but also 401, 404 or a redirect) concerns the
endpoint and asks for another attempt of all; so does a result with an unknown status, an object that cannot be read, a
page of HTML, and an answer that is too long or takes too long. After 500 and 502 the halves are tried at once, as long
as some of them are taken: one record that an endpoint stumbles over shall not cost the others their 15 minutes.

One call ends within the time that one answer may take, halves and all: what was not reached by then is tried again. The
next call then begins with smaller parts, so that it gets further.
"""

import re
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import msgspec
import urllib3

from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.output_records import Record
from patra.attribution.delivery.port import ArchiveForbiddenError, Outcome, Rejected, Retry, Written, as_sent
from patra.kernel.safety.egress import AddressRefusedError, checked_addresses, guarded_pool
from patra.kernel.safety.networks import Network, networks_named_by

CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
"""For the answer to begin, and for it to end."""
MAX_RESPONSE_BYTES = 4 * 1024 * 1024
"""Of an answer; results of 500 records are a fortieth of it."""
MAX_REQUEST_RECORDS = 1000
"""Of one request."""
REFUSALS = frozenset({400, 409, 413, 422})
SPLIT_STATUSES = frozenset({500, 502})
MAX_SPLITS = 8
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
    Reason.ARCHIVE_TIMEOUT.value: Reason.ARCHIVE_TIMEOUT,
    Reason.ARCHIVE_RATE_LIMITED.value: Reason.ARCHIVE_RATE_LIMITED,
}


class HttpArchive:
    """Posts records to a URL."""

    def __init__(
        self,
        url: str,
        *,
        key: str = "",
        networks: Sequence[Network] = (),
        connect: float = CONNECT_SECONDS,
        read: float = READ_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._connect = connect
        self._read = read
        self._monotonic = monotonic
        self._allowed = (*networks, *networks_named_by(urlsplit(url).hostname or ""))
        self._pool = guarded_pool(self._allowed, maxsize=4, retries=False)
        self._part = MAX_REQUEST_RECORDS
        self._refused: list[int] = []
        self._hope = MAX_SPLITS

    def write(self, records: Sequence[Record]) -> list[Outcome]:
        self._refused, self._hope = [], MAX_SPLITS
        end = self._monotonic() + self._connect + self._read
        outcomes = self._write(records, end)
        if not self._refused:
            self._part = min(2 * self._part, MAX_REQUEST_RECORDS)
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
            return [Retry(Reason.ARCHIVE_TIMEOUT)] * len(records)
        body = msgspec.json.encode({"records": [as_sent(record) for record in records]})
        try:
            status, answer = self._post(body, left)
        except (urllib3.exceptions.ReadTimeoutError, _TooSlowError):
            return [Retry(Reason.ARCHIVE_TIMEOUT)] * len(records)
        except AddressRefusedError as error:
            raise self._forbidden(error) from error
        except urllib3.exceptions.HTTPError:
            return [Retry(Reason.ARCHIVE_UNAVAILABLE)] * len(records)
        match status:
            case _ if 200 <= status < 300:
                self._hope = MAX_SPLITS
                return _results(records, answer)
            case 408:
                return [Retry(Reason.ARCHIVE_TIMEOUT)] * len(records)
            case 429:
                return [Retry(Reason.ARCHIVE_RATE_LIMITED)] * len(records)
            case _ if status in REFUSALS and len(records) > 1:
                self._refused.append(len(records))
                return self._in_halves(records, end)
            case _ if status in SPLIT_STATUSES and len(records) > 1 and self._hope:
                self._hope -= 1
                return self._in_halves(records, end)
            case _ if status in REFUSALS:
                return [Rejected(_code(answer))]
            case _:
                return [Retry(Reason.ARCHIVE_UNAVAILABLE)] * len(records)

    def _in_halves(self, records: Sequence[Record], end: float) -> list[Outcome]:
        """Find the record that is in the way, so that it does not take the others along."""
        half = len(records) // 2
        first = self._write(records[:half], end)
        waiting = {
            record.group: outcome
            for record, outcome in zip(records[:half], first, strict=True)
            if isinstance(outcome, Retry)
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

    def check(self) -> None:
        """Raise ArchiveForbiddenError while the name leads to an address that may not be called."""
        url = urlsplit(self._url)
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            checked_addresses(url.hostname or "", port, self._allowed)
        except PermissionError as error:
            raise self._forbidden(error) from error
        except OSError:  # a name that does not resolve is no reason to refuse: the next attempt shows
            return

    def _forbidden(self, error: Exception) -> ArchiveForbiddenError:
        found = ArchiveForbiddenError(
            "config_egress_refused",
            f"the archive is not called, and its records are kept: {error}",
            place="attribution.archive",
            advice="if that is your own server, name its address or network in egress.networks and start again",
        )
        found.check = self.check
        return found

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
        if size > MAX_RESPONSE_BYTES:
            raise urllib3.exceptions.ProtocolError("the answer is too long")
        if monotonic() > until:
            raise _TooSlowError
    return b"".join(parts)


def _results(records: Sequence[Record], body: bytes) -> list[Outcome]:
    """What the endpoint says of each record; without results its 2xx says that all are written."""
    try:
        results = msgspec.json.decode(body, type=Results).results
    except (msgspec.MsgspecError, UnicodeDecodeError):
        if body.lstrip().startswith((b"{", b"<")):  # an error document, of the archive or of a proxy before it
            return [Retry(Reason.ARCHIVE_UNAVAILABLE)] * len(records)
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
            return Rejected(_legible(code))
        case Result(code=code):
            return Retry(_RETRIES.get(code, Reason.ARCHIVE_UNAVAILABLE))
        case None:
            return Retry(Reason.ARCHIVE_UNAVAILABLE)


def _code(body: bytes) -> str:
    """The `code` of a problem document, where the refusal carries one."""
    try:
        return _legible(msgspec.json.decode(body, type=_Problem).code)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Reason.ARCHIVE_REFUSED.value


def _legible(code: str) -> str:
    """A code as the store and the journal can keep it; an unusable one is replaced by a code of our own."""
    return code if _CODE(code) else Reason.ARCHIVE_REFUSED.value


_CODE = re.compile(r"[A-Za-z0-9._:-]{1,128}").fullmatch
