"""The bus in a program of one's own: `from patra import Bus`."""

import asyncio
import functools
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal
from uuid import UUID

import msgspec
import pydantic
import pytest

from patra import Bus, EventRefused, HandlersFailed, Poison, RetryLater
from patra.bus.consuming.dead_letter import Filter
from patra.bus.operations import find_letters
from patra.bus.runtime import BusEngine
from patra.kernel.clock import DAY, MINUTE, SECOND
from patra.kernel.errors import ConfigInvalid
from patra.kernel.testing import ManualClock

EXAMPLE = Path(__file__).parents[3] / "examples" / "orders.py"


class Line(msgspec.Struct):
    article: str
    count: int = 1


class OrderPlaced(msgspec.Struct):
    """A customer placed an order."""

    order_id: Annotated[str, msgspec.Meta(min_length=1)]
    cents: int
    lines: list[Line] = []
    note: str | None = None


ORDER = OrderPlaced(order_id="o1", cents=500, lines=[Line("book")])


@pytest.fixture
def bus(database_url):
    with Bus.open(database_url, clock=ManualClock()) as made:
        made.declare("order.placed", OrderPlaced, producer="Shop", example=ORDER)
        yield made


def test_the_example_runs_and_mails_once_however_often_it_is_run(tmp_path):
    def run():
        command = [sys.executable, str(EXAMPLE), f"sqlite:///{tmp_path / 'orders.db'}"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    assert run()[-2:] == ["mail for o2: 900 cents", "1 handled"]
    assert run()[-1:] == ["0 handled"]


def test_the_example_is_short():
    lines = [one for one in EXAMPLE.read_text().splitlines() if one and not one.startswith(('"', "import", "from"))]
    assert len(lines) <= 15


def test_events_reach_single_batch_and_long_consumers_without_threads_of_the_caller(bus):
    seen = []
    bus.consume("order.placed", group="one")(lambda tx, event: seen.append(("one", event.payload["order_id"])))

    @bus.consume("order.placed", group="many", kind="batch")
    def _(tx, events):
        seen.extend(("many", event.payload["order_id"]) for event in events)

    @bus.consume("order.placed", group="slow", kind="long")
    def _(event, hold):
        return lambda tx: seen.append(("slow", event.payload["order_id"]))

    first = bus.publish("order.placed", ORDER, tenant="acme", key="o1")
    assert bus.publish("order.placed", ORDER, tenant="acme", key="o1") == first
    assert bus.run_until_idle() == 3
    assert sorted(seen) == [("many", "o1"), ("one", "o1"), ("slow", "o1")]
    assert bus.run_until_idle() == 0


def test_what_breaks_the_contract_is_refused_with_its_place(bus):
    with pytest.raises(EventRefused) as caught:
        bus.publish("order.placed", {"order_id": "", "cents": 1}, tenant="acme", key="k")
    assert (caught.value.code, caught.value.refused.place) == ("b_payload_invalid", "/payload/order_id")
    with pytest.raises(EventRefused, match="b_type_unknown"):
        bus.publish("order.lost", ORDER, tenant="acme", key="k")


def test_an_event_is_published_with_the_callers_transaction_or_not_at_all(bus):
    seen = []
    bus.consume("order.placed", group="one")(lambda tx, event: seen.append(event.event_id))

    def work(tx):
        bus.publish("order.placed", ORDER, tenant="acme", key="o1", tx=tx)
        raise KeyError

    with pytest.raises(KeyError):
        bus.transaction(work)
    assert (bus.run_until_idle(), seen) == (0, [])


def test_a_transaction_that_was_begun_before_the_bus_was_prepared_is_refused(bus):
    with pytest.raises(ConfigInvalid, match=r"bus\.transaction"):
        bus.db.run(lambda tx: bus.publish("order.placed", ORDER, tenant="acme", key="o1", tx=tx))


def test_a_failure_comes_back_when_its_time_has_come_and_poison_is_a_dead_letter(bus, caplog):
    tries = []

    @bus.consume("order.placed", group="one")
    def _(tx, event):
        tries.append(event.attempt)
        if event.attempt == 1:
            raise ValueError("not yet")
        raise Poison("never", "this order cannot be mailed")

    bus.publish("order.placed", ORDER, tenant="acme", key="o1")
    with pytest.raises(HandlersFailed, match="ValueError: not yet") as caught:
        bus.run_until_idle()
    (failure,) = caught.value.failures
    assert (failure.group, failure.attempt, failure.due_at is None) == ("one", 1, False)
    assert 'raise ValueError("not yet")' in str(caught.value)
    assert str(caught.value).count("Traceback") == 1  # of the handler alone
    assert set(tries) == {1}  # a batch that fails is undone and done again event by event
    bus.clock.advance(10 * MINUTE)
    with caplog.at_level("WARNING", "patra.bus"):
        assert bus.run_until_idle(raise_failures=False) == 0
    (said,) = caplog.messages
    assert said.startswith("1 attempt failed; the first: one failed on order.placed ")
    assert said.endswith("attempt 2; it is a dead letter: never: this order cannot be mailed")
    assert set(tries) == {1, 2}
    (letter,) = bus.db.read(lambda tx: find_letters(tx, Filter(), limit=5))
    assert (letter.error_code, letter.attempts) == ("never", 2)


def test_a_group_that_begins_after_the_first_event_is_told_what_it_misses(database_url, caplog):
    def opened(**options):
        made = Bus.open(database_url, clock=ManualClock())
        made.declare("order.placed", OrderPlaced, producer="Shop", example=ORDER)
        for group, more in options.items():
            made.consume("order.placed", group=group, **more)(lambda _tx, _event: None)
        return made

    with opened() as producer:
        producer.publish("order.placed", ORDER, tenant="acme", key="o1")
    with caplog.at_level("WARNING", "patra.bus"), opened(late={}, first={"from_beginning": True}) as consumers:
        assert consumers.run_until_idle() == 1
    (said,) = caplog.messages
    assert said.startswith("group late is new and gets events published from now on, not the earlier ones of order.pl")
    assert said.endswith("`patra bus groups forget late`, then subscribe with from_beginning=True")
    with caplog.at_level("WARNING", "patra.bus"), opened(late={}) as again:
        again.run_until_idle()
    assert len(caplog.messages) == 1


def test_a_misspelt_type_of_a_consumer_is_answered_with_the_one_that_is_meant(bus):
    bus.consume("order.plased", group="one")(lambda _tx, _event: None)
    with pytest.raises(ConfigInvalid, match=r"no such event type \(did you mean order.placed\?\)"):
        bus.run_until_idle()


def test_a_kind_of_error_has_its_own_retries_and_a_handler_may_ask_for_a_later_try(database_url):
    retry = {"max_retries": 3, "errors": {"OSError": {"delay": "PT1H"}, "ValueError": {"max_retries": 0}}}
    errors = {
        "o1": ConnectionError("down"),
        "o2": ValueError("bad"),
        "o3": RetryLater("full", "come later", seconds=7200),
    }
    with Bus.open(database_url, clock=ManualClock()) as bus:
        bus.declare("order.placed", OrderPlaced, producer="Shop", example=ORDER, retry=retry)

        @bus.consume("order.placed", group="one")
        def _(tx, event):
            raise errors[event.payload["order_id"]]

        for key in errors:
            bus.publish("order.placed", OrderPlaced(order_id=key, cents=1), tenant="acme", key=key)
        with pytest.raises(HandlersFailed) as caught:
            bus.run_until_idle()
        due = {f.trouble.detail: f.due_at and f.due_at - bus.clock.now() for f in caught.value.failures}
    assert 30 * MINUTE <= due["ConnectionError: down"] <= 60 * MINUTE  # half of the wait is jitter
    assert due["ValueError: bad"] is None
    assert due["come later"] == 120 * MINUTE


def test_a_contract_comes_from_a_file_too_and_is_declared_once_and_in_time(bus, tmp_path):
    file = tmp_path / "order.shipped.yaml"
    file.write_text(
        """{type: order.shipped, title: T, description: D, producer: Shop, versions: [{version: "1.0", examples: [{}],
        schema: {type: object, additionalProperties: false}}]}"""
    )
    bus.declare_file(file)
    with pytest.raises(ConfigInvalid, match="once"):
        bus.declare_file(file)
    bus.publish("order.shipped", {}, tenant="acme", key="k")
    with pytest.raises(ConfigInvalid, match="before"):
        bus.declare("order.lost", OrderPlaced, producer="Shop", example=ORDER)


def test_started_it_handles_events_in_threads_of_its_own(database_url):
    done = threading.Event()
    with Bus.open(database_url) as bus:
        bus.declare("order.placed", OrderPlaced, producer="Shop", example=ORDER)
        bus.consume("order.placed", group="one")(lambda tx, event: done.set())
        bus.start()
        bus.publish("order.placed", ORDER, tenant="acme", key="o1")
        assert done.wait(30)


def test_what_a_handler_of_a_started_bus_raises_is_logged_once_for_each_attempt(database_url, caplog):
    failed = threading.Event()
    with Bus.open(database_url) as bus:
        bus.declare("order.placed", OrderPlaced, producer="Shop", example=ORDER)

        @bus.consume("order.placed", group="mailer")
        def mail(tx, event):
            failed.set()
            raise Poison("free_order", "no invoice over\nnothing")

        event_id = bus.publish("order.placed", ORDER, tenant="acme", key="o1")
        bus.start()
        assert failed.wait(60)
    (record,) = [one for one in caplog.records if one.name == "patra.bus"]
    assert record.levelname == "WARNING"
    begin = f"mailer failed on order.placed {event_id}, attempt 1; it is a dead letter: free_order: no invoice over"
    assert record.getMessage().startswith(begin)
    assert "\n" not in record.getMessage()


def test_no_group_handles_an_event_before_its_time(bus):
    seen = []
    bus.consume("order.placed", group="one")(lambda tx, event: seen.append(event.payload["order_id"]))
    at = datetime.fromtimestamp(bus.clock.now() / SECOND, UTC) + timedelta(hours=1)
    bus.publish("order.placed", OrderPlaced(order_id="later", cents=1), tenant="acme", key="later", deliver_at=at)
    bus.publish("order.placed", OrderPlaced(order_id="now", cents=1), tenant="acme", key="now")
    assert (bus.run_until_idle(), seen) == (1, ["now"])
    bus.clock.advance(59 * MINUTE)
    assert bus.run_until_idle() == 0
    bus.clock.advance(MINUTE)
    assert (bus.run_until_idle(), seen) == (1, ["now", "later"])
    before = {"a year ago": at - timedelta(days=365), "long ago": datetime(1, 1, 2, tzinfo=UTC)}
    for key, instant in before.items():  # a time that is over is no reason to wait
        bus.publish("order.placed", OrderPlaced(order_id=key, cents=1), tenant="acme", key=key, deliver_at=instant)
    assert (bus.run_until_idle(), seen[2:]) == (2, list(before))
    never = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    bus.publish("order.placed", OrderPlaced(order_id="never", cents=1), tenant="acme", key="never", deliver_at=never)
    bus.clock.advance(100 * 365 * DAY)
    assert bus.run_until_idle() == 0
    with pytest.raises(ValueError, match="zone"):
        bus.publish("order.placed", ORDER, tenant="acme", key="x", deliver_at=datetime(2026, 1, 1))  # noqa: DTZ001


def test_an_event_of_an_ordered_type_is_not_called_up_before_its_time_either(database_url):
    with Bus.open(database_url, clock=ManualClock()) as bus:
        bus.declare(
            "order.placed", OrderPlaced, producer="Shop", example=ORDER, ordering={"key": ["/payload/order_id"]}
        )
        tries = []

        @bus.consume("order.placed", group="one")
        def _(tx, event):
            tries.append(event.payload["cents"])
            if len(tries) == 1:
                raise ValueError("once")

        at = datetime.fromtimestamp(bus.clock.now() / SECOND, UTC) + timedelta(hours=1)
        bus.publish("order.placed", OrderPlaced(order_id="o", cents=1), tenant="acme", key="1")
        bus.publish("order.placed", OrderPlaced(order_id="o", cents=2), tenant="acme", key="2", deliver_at=at)
        bus.run_until_idle(raise_failures=False)
        bus.clock.advance(10 * MINUTE)
        bus.run_until_idle()  # the first succeeds, and wakes its followers
        assert 2 not in tries
        bus.clock.advance(50 * MINUTE)
        bus.run_until_idle()
        assert tries[-1] == 2


class Address(pydantic.BaseModel):
    street: str


class Customer(pydantic.BaseModel):
    """A customer."""

    customer_id: str = pydantic.Field(min_length=1)
    address: Address
    title: str | None = None


def test_a_contract_comes_from_a_pydantic_model_too(database_url):
    made = Customer(customer_id="c1", address=Address(street="Main"))
    with Bus.open(database_url, clock=ManualClock()) as bus:
        bus.declare("customer.joined", Customer, producer="Shop", example=made)
        seen = []
        bus.consume("customer.joined", group="one")(lambda tx, event: seen.append(Customer(**event.payload)))
        bus.publish("customer.joined", made, tenant="acme", key="c1")
        assert (bus.run_until_idle(), seen) == (1, [made])
        with pytest.raises(EventRefused, match="b_payload_invalid"):
            bus.publish("customer.joined", {"customer_id": "", "address": {"street": "x"}}, tenant="acme", key="c2")


class OrderInEuros(msgspec.Struct):
    """A customer placed an order."""

    order_id: str
    euros: float


def test_a_second_major_is_declared_beside_the_first_and_translated(database_url):
    def opened():
        bus = Bus.open(database_url, clock=ManualClock())
        bus.declare("order.placed", OrderPlaced, producer="Shop", example=ORDER)
        return bus

    with opened() as before:
        before.prepare()
    with opened() as bus:
        bus.declare("order.placed", OrderInEuros, producer="Shop", example=OrderInEuros("o1", 5.0), version="2.0")
        with pytest.raises(ConfigInvalid, match=r"2\.0"):  # the same once more
            bus.declare("order.placed", OrderInEuros, producer="Shop", example=OrderInEuros("o1", 5.0), version="2.0")
        seen = []
        for group, versions in (("old", "<2"), ("new", ">=2"), ("both", ">=1")):
            bus.consume("order.placed", group=group, versions=versions)(
                lambda tx, event, group=group: seen.append((group, event.envelope.event_version))
            )

        @bus.translate("order.placed", given=2, made=1)
        def _(payload):
            return {"order_id": payload["order_id"], "cents": int(payload["euros"] * 100)}

        @bus.translate("order.placed", given=1, made=2)
        def _(payload):
            return {"order_id": payload["order_id"], "euros": payload["cents"] / 100}

        each = [("both", "1.0"), ("new", "2.0"), ("old", "1.0")]  # 2.0 begins as a shadow
        bus.publish("order.placed", OrderInEuros("o1", 5.0), tenant="acme", key="o1")
        assert (bus.run_until_idle(), sorted(seen)) == (3, each)
        bus.publish("order.placed", OrderPlaced("o2", 500), tenant="acme", key="o2", version="1.0")
        assert (bus.run_until_idle(), sorted(seen)) == (3, sorted(each * 2))
        with pytest.raises(EventRefused, match=r"checked as version 2\.0; 1\.0 is published, too"):
            bus.publish("order.placed", {"order_id": "o3", "cents": 1}, tenant="acme", key="o3")


class Payment(msgspec.Struct):
    """A payment of ordinary types."""

    amount: Decimal
    at: datetime
    time_of_day: time
    receipt: bytes
    payment_id: UUID
    status: Literal["paid", "open"]


class PaymentModel(pydantic.BaseModel):
    """The same as a model of pydantic."""

    amount: Decimal
    at: datetime
    time_of_day: time
    receipt: bytes
    payment_id: UUID
    status: Literal["paid", "open"]


@pytest.mark.parametrize(
    ("kind", "read"),
    [
        (Payment, lambda payload: msgspec.convert(payload, Payment)),
        (PaymentModel, PaymentModel.model_validate),
    ],
)
def test_amounts_times_and_bytes_of_a_type_are_texts_in_its_contract(kind, read):
    made = kind(
        amount=Decimal("1.50"),
        at=datetime(2026, 1, 31, tzinfo=UTC),
        time_of_day=time(8, 30),
        receipt=b"x",
        payment_id=UUID(int=7),
        status="paid",
    )
    with Bus.open("sqlite:///:memory:", clock=ManualClock()) as bus:
        bus.declare("payment.made", kind, producer="Shop", example=made)
        seen = []
        bus.consume("payment.made", group="one")(lambda tx, event: seen.append(read(event.payload)))
        bus.publish("payment.made", made, tenant="acme", key="p1")
        assert (bus.run_until_idle(), seen) == (1, [made])


def test_a_program_that_runs_an_event_loop_publishes_and_consumes_from_threads(database_url):
    async def program():
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        bus = await asyncio.to_thread(Bus.open, database_url)
        bus.declare("order.placed", OrderPlaced, producer="Shop", example=ORDER)

        @bus.consume("order.placed", group="one")
        def _(tx, event):
            tx.after_commit(lambda: loop.call_soon_threadsafe(done.set))

        await asyncio.to_thread(bus.start)
        await asyncio.to_thread(bus.publish, "order.placed", ORDER, tenant="acme", key="o1")
        await asyncio.wait_for(done.wait(), 30)
        await asyncio.to_thread(bus.close)
        return True

    with ThreadPoolExecutor(1) as pool:  # a browser of other tests may have a loop in this thread
        assert pool.submit(asyncio.run, program()).result()


async def _coroutine(*_):
    """What looks like a handler to an asyncio programmer."""


def _generator(*_):
    yield


class _Callable:
    async def __call__(self, *_):
        """The same as an object."""


@pytest.mark.parametrize("handler", [_coroutine, functools.partial(_coroutine), _generator, _Callable()])
def test_a_handler_that_a_call_does_not_run_is_refused_when_it_is_declared(handler):
    with Bus.open("sqlite:///:memory:") as bus, pytest.raises(ConfigInvalid, match="plain function"):
        bus.consume("order.placed", group="one")(handler)


@pytest.mark.parametrize("kind", ["single", "batch", "long"])
def test_an_event_is_not_handled_by_an_awaitable_that_nothing_awaits(bus, kind):
    bus.consume("order.placed", group="one", kind=kind)(lambda *_: _coroutine())
    bus.publish("order.placed", ORDER, tenant="acme", key="o1")
    with pytest.raises(HandlersFailed):
        bus.run_until_idle()


def test_threads_that_publish_first_build_one_engine(bus):
    built, second = [], []

    class Engine(BusEngine):
        def __init__(self, *args, **more):
            built.append(self)
            if len(built) == 1:
                second.append(pool.submit(publish, "o2"))
                wait(second, timeout=0.1)  # it has to wait for the engine of the first
            super().__init__(*args, **more)

    def publish(key):
        return bus.publish("order.placed", ORDER, tenant="acme", key=key)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as pool:
        patch.setattr("patra.bus.embedded.BusEngine", Engine)
        assert publish("o1") != second[0].result()
    assert len(built) == 1


def test_a_consumer_that_no_thread_would_serve_is_refused(bus):
    bus.start()
    threads = list(bus._threads)
    bus.start()  # changes nothing
    assert bus._threads == threads
    with pytest.raises(ConfigInvalid, match=r"before `bus\.start"):
        bus.consume("order.placed", group="late")(lambda tx, event: None)


def test_a_handler_that_publishes_without_its_transaction_is_told_to_pass_it_on(bus):
    @bus.consume("order.placed", group="one")
    def _(tx, event):
        bus.publish("order.placed", ORDER, tenant="acme", key="o2")

    bus.publish("order.placed", ORDER, tenant="acme", key="o1")
    with pytest.raises(HandlersFailed, match="pass on the `tx`"):
        bus.run_until_idle()
