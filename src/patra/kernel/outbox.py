"""Turns messages appended in the caller's transaction into deliveries in order within a group.

A message leaves the table when it is delivered. The oldest pending message of a group, its head, stands for the group:
a relay that holds the head holds the group, and a head whose `due_at` lies ahead (held, or backing off) makes the whole
group wait. So order within a group and parallel work across groups need no lock beyond one row, and a relay that dies
leaves heads that fall due again by themselves.

A new message is due at once, so that a commit never goes unseen. One that a relay meets behind a head that must wait is
parked, out of the way of the search for work; the relay that settles the head makes the next in line due. Both keep the
head's row locked meanwhile, so a message is parked only while a relay exists that will make it due.

Order is the order of `seq`. Transactions that append to one group at the same time have no order between them, unless
they already take turns on something else (a row lock, the one writer of SQLite); then `seq` follows their turns.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, assert_never

import msgspec

from patra.kernel.canonical import key16
from patra.kernel.clock import HOUR, Clock
from patra.kernel.db import Database, Queries, Row, Tx
from patra.kernel.ids import new_id
from patra.kernel.machine import Machine
from patra.kernel.outbox_messages import (
    Deliver,
    Delivered,
    Message,
    Outcome,
    Pending,
    Policy,
    Refused,
    Retry,
    Settled,
    State,
    Untried,
    next_attempt,
)

Q = Queries.load("patra.kernel")

PARKED = HOUR  # how long a message behind a waiting head is out of the way, should nobody call it up
ROUNDS = 16  # of the search for heads among messages that are due


class OutboxTransition(StrEnum):
    DELIVER = "deliver"
    RETRY = "retry"
    REFUSE = "refuse"
    WINDOW_ENDS = "window_ends"
    REQUEUE = "requeue"


OUTBOX = Machine(
    "outbox",
    initial=State.PENDING,
    edges={
        (State.PENDING, OutboxTransition.DELIVER): State.DELIVERED,
        (State.PENDING, OutboxTransition.RETRY): State.PENDING,
        (State.PENDING, OutboxTransition.REFUSE): State.REFUSED,
        (State.PENDING, OutboxTransition.WINDOW_ENDS): State.GIVEN_UP,
        (State.REFUSED, OutboxTransition.REQUEUE): State.PENDING,
        (State.GIVEN_UP, OutboxTransition.REQUEUE): State.PENDING,
    },
    version="outbox_v1",
)


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    groups: int = 0
    delivered: int = 0
    retried: int = 0
    refused: int = 0
    given_up: int = 0
    fenced: int = 0

    @property
    def idle(self) -> bool:
        return self.groups == 0


def append(tx: Tx, channel: str, messages: Sequence[Message], now: int) -> None:
    """Add messages in the caller's transaction: they are delivered if, and only if, it commits."""
    tx.insert_tuples(
        "krn_outbox",
        ("channel", "group_key", "message_key", "payload", "appended_at", "due_at"),
        [(channel, key16(m.group), m.key, m.payload, now, now) for m in messages],
    )


def one_by_one(send: Callable[[Pending], Delivered | Retry | Refused]) -> Deliver:
    """A delivery that sends single messages, and leaves the rest of a group alone once one of it failed."""

    def deliver(messages: Sequence[Pending]) -> list[Outcome]:
        waiting: set[bytes] = set()
        outcomes: list[Outcome] = []
        for message in messages:
            if message.group_key in waiting:
                outcomes.append(Untried())
                continue
            outcome = send(message)
            if isinstance(outcome, Retry):
                waiting.add(message.group_key)
            outcomes.append(outcome)
        return outcomes

    return deliver


class Ahead(msgspec.Struct, frozen=True, kw_only=True):
    """From how many groups a turn delivered, and whether it met its bounds: then there may be more at once."""

    groups: int = 0
    full: bool = False


class _Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a receiver answered, and is not recorded yet."""

    holder: str
    messages: Sequence[Pending]
    outcomes: Sequence[Outcome]
    now: int


class Relay:
    """Takes groups that are due, delivers their messages outside any transaction, and records the result.

    `deliver` is given messages ordered by `seq` and answers each; it must not try a message after a `Retry` of the same
    group (`Untried`). `on_settled` runs in the transaction that takes the messages out, so that the rows of an engine
    move with them.
    """

    def __init__(
        self,
        db: Database,
        channel: str,
        deliver: Deliver,
        policy: Policy,
        clock: Clock,
        on_settled: Callable[[Tx, Sequence[Settled], int], None] | None = None,
    ) -> None:
        self._db = db
        self._channel = channel
        self._deliver = deliver
        self._policy = policy
        self._clock = clock
        self._on_settled = on_settled
        self._told: _Told | None = None

    def run_once(self) -> Counts:
        self.run_ahead()
        return self.catch_up()

    def run_ahead(self) -> Ahead:
        """Deliver, and leave it to the next turn, or to `catch_up`, to record the result.

        One transaction a turn instead of two, and none between a delivery and those who wait for it. Who calls this
        calls again before the hold ends: what was not recorded by then is delivered again.
        """
        holder = new_id()  # of this turn alone: what an earlier turn left unfinished is not ours any more
        told = self._told

        def work(tx: Tx) -> list[Pending]:
            if told is not None:
                self._record(tx, told)
            return self._take(tx, holder)

        messages = self._db.run(work, durable=self._policy.durable)
        self._told = None
        if not messages:
            return Ahead()
        outcomes = self._deliver(messages)
        if len(outcomes) != len(messages):
            raise ValueError(f"{self._channel}: {len(messages)} messages were given, {len(outcomes)} answered")
        self._told = _Told(holder=holder, messages=messages, outcomes=outcomes, now=self._clock.now())
        lengths = Counter([message.group_key for message in messages])
        full = len(lengths) == self._policy.groups or max(lengths.values()) == self._policy.per_group
        return Ahead(groups=len(lengths), full=full)

    @property
    def behind(self) -> bool:
        """Whether there is something to record."""
        return self._told is not None

    def catch_up(self) -> Counts:
        """Record the result of the last turn."""
        if (told := self._told) is None:
            return Counts()
        self._told = None  # should it fail, the hold ends, and all is delivered again
        return self._db.run(lambda tx: self._record(tx, told), durable=self._policy.durable)

    def next_due(self) -> int | None:
        """When there will be something to do, if nothing is appended before."""
        return self._db.read(lambda tx: tx.fetch(Q["outbox_next_due"], {"channel": self._channel})[0][0])

    def _take(self, tx: Tx, holder: str) -> list[Pending]:
        now = self._clock.now()
        held: list[Row] = []
        for _ in range(ROUNDS):
            found, everything = self._hold(tx, holder, now, self._policy.groups - len(held))
            held += found
            if everything or len(held) == self._policy.groups:
                break
        rows = tx.fetch(
            Q["outbox_messages"], {"channel": self._channel, "per_group": self._policy.per_group}, rows=held
        )
        return _pending(rows, holder, now)

    def _hold(self, tx: Tx, holder: str, now: int, most: int) -> tuple[list[Row], bool]:
        """Hold heads that are due; gives them, and whether everything that is due was looked at."""
        channel = {"channel": self._channel}
        size = 4 * self._policy.groups
        window = {**channel, "now": now, "window": size}
        due = tx.fetch(Q["outbox_due"], window)
        everything = sum(int(count) for _, count in due) < size
        free: list[tuple[int]] = []
        waiting: list[tuple[int]] = []
        for seq, due_at in tx.fetch(Q["outbox_heads"], channel, rows=[(group_key,) for group_key, _ in due]):
            (free if due_at <= now else waiting).append((seq,))
        held = tx.fetch(
            Q["outbox_hold"],
            {"holder": holder, "until": now + self._policy.hold, "now": now},
            rows=sorted(free)[:most],
        )
        locked = tx.fetch(Q["outbox_lock_waiting"], {"now": now}, rows=sorted(waiting))
        if not everything and len(held) < most:
            locked = locked + held  # what follows these hides the heads of other groups
        tx.execute(Q["outbox_park"], {**window, "until": now + PARKED}, rows=locked)
        return held, everything

    def _record(self, tx: Tx, told: "_Told") -> Counts:
        holder, messages, outcomes, now = told.holder, told.messages, told.outcomes, told.now
        heads: dict[bytes, int] = {}
        for message in messages:
            heads.setdefault(message.group_key, message.seq)
        kept = {
            group_key
            for _, group_key in tx.fetch(
                Q["outbox_still_held"], {"holder": holder}, rows=[(seq,) for seq in heads.values()]
            )
        }
        settled: list[Settled] = []
        failed: list[tuple[int, int, int, int, str]] = []
        for message, outcome in zip(messages, outcomes, strict=True):
            if message.group_key not in kept:
                continue
            match outcome:
                case Delivered():
                    settled.append(_settled_message(message, OutboxTransition.DELIVER))
                case Refused(code):
                    settled.append(_settled_message(message, OutboxTransition.REFUSE, code))
                case Retry(code):
                    first = now if message.failed_at is None else message.failed_at
                    due = next_attempt(self._policy, message.attempt + 1, first, now)
                    if due is None:
                        settled.append(_settled_message(message, OutboxTransition.WINDOW_ENDS, code))
                    else:
                        failed.append((message.seq, due, message.attempt + 1, first, code))
                case Untried():
                    pass
                case _:
                    assert_never(outcome)
        if self._policy.group_window:
            settled += self._rest_of_groups(tx, settled)
            groups = {message.seq: message.group_key for message in messages}
            shared = sorted((groups[seq], first) for seq, _, _, first, _ in failed)
            tx.execute(Q["outbox_share_failure"], {"channel": self._channel}, rows=shared)
        over = {state: [s for s in settled if s.state is state] for state in State}
        tx.execute(Q["outbox_delivered"], rows=[(s.message.seq,) for s in over[State.DELIVERED]])
        tx.execute(
            Q["outbox_ended"],
            rows=[
                (s.message.seq, s.state.value, s.message.attempt + 1, s.message.failed_at or now, s.reason)
                for s in over[State.REFUSED] + over[State.GIVEN_UP]
            ],
        )
        tx.execute(
            Q["outbox_call_up"],
            {"channel": self._channel, "now": now, "holder": holder},
            rows=[(group_key,) for group_key in sorted(kept)],
        )
        tx.execute(Q["outbox_failed"], rows=failed)
        if self._on_settled is not None and settled:
            self._on_settled(tx, settled, now)
        return Counts(
            groups=len(heads),
            delivered=len(over[State.DELIVERED]),
            retried=len(failed),
            refused=len(over[State.REFUSED]),
            given_up=len(over[State.GIVEN_UP]),
            fenced=len(heads) - len(kept),
        )

    def _rest_of_groups(self, tx: Tx, settled: Sequence[Settled]) -> list[Settled]:
        """What is still pending of groups of which a message was given up."""
        given_up = {s.message.group_key: s.reason for s in settled if s.state is State.GIVEN_UP}
        over = {s.message.seq for s in settled}
        everything = {"channel": self._channel, "per_group": 2**31 - 1}
        rows = tx.fetch(Q["outbox_messages"], everything, rows=[(group_key, 0) for group_key in sorted(given_up)])
        rest = [_message(row) for row in sorted(rows) if row[0] not in over]
        return [_settled_message(m, OutboxTransition.WINDOW_ENDS, given_up[m.group_key]) for m in rest]


def _settled_message(message: Pending, on: OutboxTransition, reason: str | None = None) -> Settled:
    """A message that leaves the table along one of its edges."""
    return Settled(message=message, state=OUTBOX.target(State.PENDING, on), reason=reason)


def _pending(rows: Sequence[Row], holder: str, now: int) -> list[Pending]:
    """The messages of the groups that are held, by `seq`, each group up to where another relay is already at work.

    That happens when a message with a smaller `seq` is committed after the group was taken by the other.
    """
    messages: list[Pending] = []
    others: set[bytes] = set()
    for row in sorted(rows):
        message, (due_at, held_by) = _message(row), row[7:]
        if message.group_key in others or (held_by is not None and held_by != holder and due_at > now):
            others.add(message.group_key)
            continue
        messages.append(message)
    return messages


def _message(row: Row) -> Pending:
    seq, group_key, key, payload, appended_at, attempt, failed_at, *_ = row
    return Pending(
        seq=seq,
        group_key=group_key,
        key=key,
        payload=payload,
        appended_at=appended_at,
        attempt=attempt,
        failed_at=failed_at,
    )


def requeue(tx: Tx, channel: str, seqs: Sequence[int], now: int) -> int:
    """An operator's word: refused and given-up messages are tried again, behind nothing that was delivered since."""
    return len(tx.fetch(Q["outbox_requeue"], {"channel": channel, "now": now}, rows=[(seq,) for seq in seqs]))


class Undelivered(msgspec.Struct, frozen=True, kw_only=True):
    """A message that its receiver refused, or that was given up when its window ended; `reason` is the code."""

    channel: str
    seq: int
    key: str
    state: str
    reason: str | None
    attempts: int
    appended_at: int
    failed_at: int


def undelivered_messages(tx: Tx, *, channel: str = "", after: int = 0, limit: int = 100) -> list[Undelivered]:
    """What was not delivered and waits for an operator, the oldest first; an empty `channel` stands for any."""
    rows = tx.fetch(Q["outbox_dead"], {"channel": channel, "after": after, "limit": limit})
    return [Undelivered(**dict(zip(Undelivered.__struct_fields__, row, strict=True))) for row in rows]


def waiting(tx: Tx, channel: str, limit: int) -> list[dict[str, Any]]:
    """What is on its way over a channel, the next to be sent first."""
    return tx.fetch_dicts(Q["outbox_waiting"], {"channel": channel, "limit": limit})


class RefusedMessages(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of a channel that were refused or given up, and the reason of one of them."""

    channel: str
    count: int
    reason: str


def refused_since(tx: Tx, since: int) -> list[RefusedMessages]:
    """What was refused or given up since an instant and still waits for an operator, by channel."""
    rows = tx.fetch(Q["outbox_refused_since"], {"since": since})
    return [RefusedMessages(channel=channel, count=count, reason=reason or "") for channel, count, reason in rows]


def failing_since(tx: Tx) -> dict[str, int]:
    """Since when messages of a channel fail and are tried again; channels that deliver have none."""
    return dict(tx.fetch(Q["outbox_failing"]))


def backlog(tx: Tx) -> dict[tuple[str, str], int]:
    """How many messages there are, by channel and state."""
    return {(channel, state): count for channel, state, count, _ in tx.fetch(Q["outbox_backlog"])}


def backlog_up_to(tx: Tx, most: int) -> dict[tuple[str, str], int]:
    """The same for pages that are read often: at most so many are counted of each channel that waits."""
    return {(channel, state): count for channel, state, count in tx.fetch(Q["outbox_backlog_up_to"], {"most": most})}
