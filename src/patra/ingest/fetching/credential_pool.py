"""Credentials that stand in for each other: the preferred one that works is used, one that does not is set aside."""

from patra.ingest.fetching.endpoint_client import EndpointClient
from patra.ingest.fetching.runtime import Runtime
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import HOUR, MINUTE
from patra.kernel.telemetry import get_logger

log = get_logger()

REST: dict[RunReason, int] = {
    RunReason.UNAUTHORIZED: HOUR,
    RunReason.TOKEN_REFUSED: HOUR,
    RunReason.CREDENTIAL_MISSING: 5 * MINUTE,
    RunReason.SECRET_WITHHELD: 5 * MINUTE,
    RunReason.THROTTLED: MINUTE,
}
"""Why a credential is set aside, and for how long."""


def credential_key(line: EndpointClient) -> str:
    return f"{line.source}|{line.leg.auth.credential_ref}"


def preferred_client(s: Runtime, line: EndpointClient) -> EndpointClient:
    """The client of the first credential of the pool that is not set aside; as it came where all are."""
    now = s.clock.now()
    return next((one for one in line.pool if s.credentials.usable(credential_key(one), now)), line)


def next_credential(s: Runtime, line: EndpointClient, why: RunReason, rest: int | None = None) -> EndpointClient | None:
    """Set a credential aside and give the client of the next that works; None where there is no other."""
    if len(line.pool) == 1 or why not in REST:
        return None
    s.credentials.set_aside(credential_key(line), s.clock.now() + (rest or REST[why]))
    found = preferred_client(s, line)
    if found is line:
        return None
    log.warning("credential_set_aside", source=line.source, name=line.leg.auth.credential_ref, why=why.value)
    return found
