"""Endpoints of other organisations as consumer groups: each event is one signed HTTP request.

Signed and retried as Standard Webhooks asks, by the library of that name; the body is the CloudEvent in structured
mode. Any answer but 2xx is a failure: the event comes back over some three days, or when `Retry-After` says. An
endpoint that takes nothing for so long, or says that it is gone (410), is suspended with its backlog kept; nobody else
notices (B9).
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

import msgspec

from patra.bus.bus import Bus
from patra.bus.catalogue.reasons import Reason
from patra.bus.catalogue.versions import VersionRange
from patra.bus.consuming.consumer import Consumer, EndpointFailed, Event, Finish, Hold, Kind
from patra.bus.publishing.cloudevents import STRUCTURED, structure_event
from patra.bus.publishing.envelope import Refused
from patra.bus.store import dead_letters, groups
from patra.bus.transports.webhook_secrets import NO_KEYS, WebhookKeys
from patra.kernel.clock import HOUR, MINUTE, SECOND, Clock
from patra.kernel.db import Tx
from patra.kernel.safety.networks import private_address
from patra.kernel.safety.redact import redact_url

if TYPE_CHECKING:
    from patra.kernel.safety.networks import Network

OVERLAP = 24 * HOUR  # for which an old secret signs along with the new one
GONE = 410
SCHEDULE = (5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR)
"""The waits after each failure that Standard Webhooks recommends: some three days in all."""
CONCURRENCY = 4  # calls of one endpoint at a time
SMALL = 64 * 1024
MAX_URL_CHARS, MAX_HOST_CHARS, MAX_LABEL_CHARS = 2000, 253, 63  # the latter two by RFC 1035

Post: TypeAlias = Callable[[str, Mapping[str, str], bytes], "Answer"]
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,40}\Z")


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What an endpoint said: its status, and how long it asks to be left alone (µs)."""

    status: int
    retry_after: int = 0


def signatures(webhook: groups.Webhook, event_id: str, now: int, body: str) -> str:
    """One signature for each secret in force: while a new one overlaps the old one, a receiver may know either."""
    from standardwebhooks import Webhook as Signer  # noqa: PLC0415  only a process that calls webhooks needs it

    secrets_in_force = [webhook.secret, *([webhook.old_secret] if now < webhook.old_secret_until else [])]
    at = datetime.fromtimestamp(now // SECOND, UTC)
    return " ".join(Signer(secret).sign(event_id, at, body) for secret in secrets_in_force)


def request(webhook: groups.Webhook, event: Event, now: int) -> tuple[dict[str, str], bytes]:
    """Headers and body of one call."""
    body = msgspec.json.encode(structure_event(event.envelope))
    headers = {
        "content-type": f"{STRUCTURED}; charset=utf-8",
        "webhook-id": event.event_id,
        "webhook-timestamp": str(now // SECOND),
        "webhook-signature": signatures(webhook, event.event_id, now, body.decode()),
    }
    return headers, body


def retry_after(text: str, now: int) -> int:
    """The header `Retry-After`, seconds or an HTTP date, as µs from now; 0 for what is neither."""
    text = text.strip()
    if text.isdecimal():
        return min(int(text[:9]), 10**8) * SECOND
    try:
        at = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return 0
    return max(int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()) * SECOND - now, 0)


def post(clock: Clock, seconds: float = 10.0, networks: "Sequence[Network] | None" = None) -> Post:
    """The network: one connection pool, no redirects (they could lead anywhere), bounded in time.

    The status is the answer. What of a body came along with it is read; a connection on which more of it would follow
    is not used again, since the next answer would begin with the rest.

    With `networks`, addresses that are not public are called only where they are in one of these.
    """
    import urllib3  # noqa: PLC0415  only a process that calls webhooks needs it

    from patra.kernel.safety.egress import guarded_pool  # noqa: PLC0415

    timeout = urllib3.Timeout(total=seconds)
    if networks is None:
        pool = urllib3.PoolManager(maxsize=CONCURRENCY, timeout=timeout, retries=False)
    else:
        pool = guarded_pool(networks, maxsize=CONCURRENCY, timeout=timeout, retries=False)

    def call(url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        try:
            answer = pool.request("POST", url, body=body, headers=headers, redirect=False, preload_content=False)
        except urllib3.exceptions.HTTPError as error:
            raise EndpointFailed(Reason.WEBHOOK_UNREACHABLE, f"{redact_url(url)}: {type(error).__name__}") from error
        with suppress(urllib3.exceptions.HTTPError):
            answer.read1(SMALL, decode_content=False)  # whole, it goes back into the pool
        answer.close()
        wait = retry_after(answer.headers.get("retry-after", ""), clock.now())
        return Answer(status=answer.status, retry_after=wait)

    return call


def caller(webhook: groups.Webhook, clock: Clock, send: Post) -> Callable[[Event, Hold], Finish | None]:
    """The long handler that calls an endpoint."""

    def call(event: Event, hold: Hold) -> Finish | None:
        del hold
        if webhook.tenants and event.envelope.tenant_id not in webhook.tenants:
            return None
        headers, body = request(webhook, event, clock.now())
        answer = send(webhook.url, headers, body)
        if answer.status == GONE:
            raise EndpointFailed(Reason.WEBHOOK_STATUS, "the endpoint is gone (410)", gone=True)
        if not 200 <= answer.status < 300:
            detail = f"the endpoint answered {answer.status}"
            raise EndpointFailed(Reason.WEBHOOK_STATUS, detail, wait=answer.retry_after)
        return lambda tx: groups.webhook_succeeded(tx, webhook.name, clock.now())

    return call


def group(name: str) -> str:
    return groups.WEBHOOK_PREFIX + name


def add(
    tx: Tx,
    bus: Bus,
    name: str,
    url: str,
    wanted: Mapping[str, VersionRange],
    *,
    by: str,
    tenants: Collection[str] = (),
    keys: WebhookKeys = NO_KEYS,
    networks: "Sequence[Network] | None" = None,
) -> groups.Webhook | Refused:
    """Register an endpoint for some event types; gives it with its new secret, which is shown this once.

    With `networks`, an address that is not public is refused unless it is in one of these.
    """
    if not _NAME.match(name):
        return Refused(
            code=Reason.WEBHOOK_NAME, place="/name", detail="lower-case letters, digits, - and _, at most 41"
        )
    if (wrong := _wrong_with(url)) is not None:
        return Refused(code=Reason.WEBHOOK_URL, place="/url", detail=wrong)
    if networks is not None and (private := _private_address(url, networks)) is not None:
        detail = f"{private} is not a public address: name its network in `bus.webhook_networks` if it is meant"
        return Refused(code=Reason.WEBHOOK_ADDRESS, place="/url", detail=detail)
    for event_type, versions in wanted.items():
        kind = bus.catalogue.types.get(event_type)
        if kind is None or not versions.majors(set(kind.contracts)):
            detail = f"there is no event type {event_type} in these versions"
            if kind is None and event_type in bus.registered_elsewhere(tx).types:
                detail = (
                    f"the contract of {event_type} is in a program; a webhook needs it in a file "
                    f"(`patra bus new {event_type}`), in a folder that `bus.catalogue` names"
                )
            return Refused(code=Reason.TYPE_UNKNOWN, place=f"/types/{event_type}", detail=detail)
    if not wanted:
        return Refused(code=Reason.TYPE_UNKNOWN, place="/types", detail="name at least one event type")
    now = bus.clock.now()
    stored, secret = keys.new()
    made = groups.Webhook(
        name=name, url=url, secret=stored, created_by=by, created_at=now, tenants=tuple(sorted(set(tenants)))
    )
    if not groups.add_webhook(tx, made):
        return Refused(code=Reason.WEBHOOK_EXISTS, place="/name", detail=f"there is a webhook {name} already")
    groups.lock(tx)
    for event_type, versions in wanted.items():
        bus.subscribe(tx, group(name), event_type, versions, False, now)
    detail = {"url": redact_url(url), "types": sorted(wanted), "tenants": list(made.tenants)}
    groups.record_act(tx, by=by, act="webhook_add", subject=group(name), detail=detail, now=now)
    return msgspec.structs.replace(made, secret=secret)


def rotate(tx: Tx, bus: Bus, name: str, *, by: str, overlap: int = OVERLAP, keys: WebhookKeys = NO_KEYS) -> str | None:
    """A new secret, given this once; the old one signs along for a while. None where there is no such endpoint."""
    now = bus.clock.now()
    stored, secret = keys.new()
    if not groups.rotate_webhook(tx, name, stored, now + overlap):
        return None
    detail = {"overlap_seconds": overlap // SECOND}
    groups.record_act(tx, by=by, act="webhook_rotate", subject=group(name), detail=detail, now=now)
    return secret


def _wrong_with(url: str) -> str | None:
    """No name and no password stand in it. Sensitive parameters may, and are masked where webhooks are shown.

    The host is one that can be resolved, and the same to the parser that connects.
    """
    from urllib3.util import parse_url  # noqa: PLC0415

    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        sound = parts.scheme in {"http", "https"} and (parts.port or 1) > 0 and len(url) <= MAX_URL_CHARS
        sound = sound and host == (parse_url(url).host or "").strip("[]").lower() and _is_resolvable(host)
    except ValueError:
        sound = False
    else:
        if sound and parts.username is not None:
            return "without a name or password, which all would read; the signature says who sends"
    return None if sound and url.isprintable() and " " not in url else "an http or https URL"


def _is_resolvable(host: str) -> bool:
    labels = host.removesuffix(".").split(".")
    return host.isascii() and len(host) <= MAX_HOST_CHARS and all(0 < len(one) <= MAX_LABEL_CHARS for one in labels)


def _private_address(url: str, networks: "Sequence[Network]") -> str | None:
    """By the parser that connects: what it takes for the host is what is judged."""
    from urllib3.util import parse_url  # noqa: PLC0415

    return private_address(parse_url(url).host or "", networks)


def remove(tx: Tx, bus: Bus, name: str, *, by: str) -> bool:
    """Forget an endpoint and its group; its dead letters stay. False, and nothing is done, where there is none."""
    groups.lock(tx)
    if not groups.remove_webhook(tx, name):
        return False
    found, now = groups.find(tx, group(name)), bus.clock.now()
    if found is not None:
        groups.remove(tx, found.group_id)
    dead_letters.reopen(tx, group(name), now)
    groups.record_act(tx, by=by, act="webhook_remove", subject=group(name), detail={}, now=now)
    return True


def consumers(
    webhook: groups.Webhook, subscriptions: Sequence[tuple[str, str, VersionRange]], clock: Clock, send: Post
) -> list[Consumer]:
    """The consumers of an endpoint, one a subscription."""
    handler = caller(webhook, clock, send)
    return [
        Consumer(
            event_type=event_type,
            group=name,
            versions=versions,
            kind=Kind.LONG,
            handler=handler,
            concurrency=CONCURRENCY,
            lease=60 * SECOND,
            schedule=SCHEDULE,
        )
        for name, event_type, versions in subscriptions
        if name == group(webhook.name)
    ]
