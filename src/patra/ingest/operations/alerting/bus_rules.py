"""Alert rules on readings that bus and outbox hand in: they keep their own store, the life of an alert is the same."""

import re
from collections.abc import Callable, Iterable

from patra.ingest.operations.alerting.alerts import RULES, Look, Reading, Rule, Severity, Thresholds

FROZEN = "bus_frozen"
DEAD_LETTERS = "bus_dead_letters"
LAG = "bus_lag"
SUSPENDED = "bus_suspended"
UNDELIVERED = "undelivered"


def _handed_in(name: str) -> Callable[[Look, Thresholds], Iterable[Reading]]:
    return lambda look, _: look.handed_in.get(name, ())


BUS_RULES: tuple[Rule, ...] = (
    Rule(
        name=FROZEN,
        severity=Severity.CRITICAL,
        text="publishing of an event type is frozen",
        advice="`patra bus dead-letters --type TYPE`: replay or discard them, or `patra bus thaw TYPE`",
        read=_handed_in(FROZEN),
        hold=lambda _: 0,
    ),
    Rule(
        name=DEAD_LETTERS,
        severity=Severity.WARNING,
        text="dead letters wait for someone",
        advice="`patra bus dead-letters --type TYPE` says why; `patra bus replay` or `discard` them",
        read=_handed_in(DEAD_LETTERS),
        hold=lambda _: 0,
    ),
    Rule(
        name=LAG,
        severity=Severity.WARNING,
        text="a consumer group is behind: its oldest event waits for too long",
        advice="does a process handle this group (`patra bus groups`, `patra work`)? More workers, or a faster handler",
        read=_handed_in(LAG),
        hold=lambda t: t.sample,
    ),
    Rule(
        name=SUSPENDED,
        severity=Severity.WARNING,
        text="a webhook is suspended: it is not called, and its events wait",
        advice="`patra bus webhooks` says why; `patra bus groups resume webhook.NAME` calls it again, with its backlog",
        read=_handed_in(SUSPENDED),
        hold=lambda _: 0,
    ),
)
OUTBOX_RULE = Rule(
    name=UNDELIVERED,
    severity=Severity.WARNING,
    text="an archive, the bus or another receiver does not take messages",
    advice="`patra outbox --channel CHANNEL` says why; when the cause is gone, `patra outbox requeue CHANNEL SEQ`",
    read=_handed_in(UNDELIVERED),
    hold=lambda _: 0,
)
ALL_RULES: tuple[Rule, ...] = (*RULES, *BUS_RULES, OUTBOX_RULE)


def engine_of(rule: str) -> str:
    """What a rule is about: `ingest`, `bus` or `outbox`."""
    if rule == OUTBOX_RULE.name:
        return "outbox"
    return "bus" if any(one.name == rule for one in BUS_RULES) else "ingest"


def name_subject(advice: str, subject: str) -> str:
    """Advice with the names of its subject, so that its commands can be copied as they are."""
    source, _, rest = subject.partition("/")
    endpoint = rest.partition("/")[0].partition(" ")[0]
    names = {
        " [ENDPOINT]": f" {endpoint}" if endpoint else "",
        "SOURCE": source,
        "TYPE": subject,
        "CHANNEL": subject,
        "webhook.NAME": subject,
    }
    return re.sub(r" \[ENDPOINT\]|\b(?:SOURCE|TYPE|CHANNEL|webhook\.NAME)\b", lambda found: names[found[0]], advice)
