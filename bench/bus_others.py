"""One other queue, with the handler of our benchmark: publishes, then consumes, and writes its two rates as JSON.

`python bench/bus_others.py NAME POSTGRES BROKER EVENTS`, in an environment that has the queue and not Patra. Every handler
inserts one row into PostgreSQL and commits it durably. Publishing is timed as a whole; consuming from the first effect to
the last, so that nobody's start counts. Each is set up as its documentation advises for speed: sets where it takes sets,
several handlers at once, no results kept.
"""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import psycopg_pool

logging.disable(logging.WARNING)

AT_ONCE = 16
INSERT = "INSERT INTO effect (event_id) VALUES (%s)"
PAYLOAD = {
    "error_id": "err_01", "module": "worker-hub", "error_code": "model_out_of_memory", "message": "lipsync needs 3 GB more",
    "severity": "error", "retryable": True, "run_id": "run_01", "job_id": "job_02",
}  # fmt: skip
GIVEN = os.environ.get("BUS_OTHERS")  # to a worker process, which has a command line of its own
NAME, POSTGRES, BROKER, EVENTS = GIVEN.split("|") if GIVEN else sys.argv[1:5]


def bodies() -> list[dict[str, Any]]:
    return [{"event_id": str(uuid.uuid4()), **PAYLOAD} for _ in range(int(EVENTS))]


def watched(begin: Callable[[], object]) -> float:
    """Effects a second, from the first to the last, while what `begin` began is at work."""
    with psycopg.connect(POSTGRES, autocommit=True) as watcher:

        def count() -> int:
            return watcher.execute("SELECT count(*) FROM effect").fetchone()[0]

        begin()
        until = time.monotonic() + 120
        while not (first := count()):
            if time.monotonic() > until:
                raise TimeoutError("nothing was consumed")
            time.sleep(0.01)
        started = time.perf_counter()
        while (last := count()) < int(EVENTS) and time.monotonic() < until:
            time.sleep(0.05)  # looking costs the one that is watched some of its time
        return (last - first) / (time.perf_counter() - started)


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return int(EVENTS) / (time.perf_counter() - started)


def in_thread(work: Callable[[], object]) -> None:
    threading.Thread(target=work, daemon=True).start()


def procrastinate_() -> tuple[float, float]:
    import procrastinate

    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=POSTGRES, max_size=AT_ONCE + 4))
    pool = psycopg_pool.AsyncConnectionPool(POSTGRES, max_size=AT_ONCE, open=False, kwargs={"autocommit": True})

    @app.task(name="effect")
    async def effect(body: dict[str, Any]) -> None:
        async with pool.connection() as connection:
            await connection.execute(INSERT, [body["event_id"]])

    async def publish() -> None:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()
            made = bodies()
            rates.append(time.perf_counter())
            for at in range(0, len(made), 1000):
                await effect.batch_defer_async(*[{"body": body} for body in made[at : at + 1000]])
            rates.append(time.perf_counter())

    async def consume() -> None:
        await pool.open()
        async with app.open_async():
            await app.run_worker_async(
                wait=False,
                concurrency=AT_ONCE,
                install_signal_handlers=False,
                listen_notify=False,
                delete_jobs="always",
            )

    rates: list[float] = []
    asyncio.run(publish())
    return int(EVENTS) / (rates[1] - rates[0]), watched(lambda: in_thread(lambda: asyncio.run(consume())))


def dbos_() -> tuple[float, float]:
    from dbos import DBOS, DBOSClient, SQLAlchemyDatasource
    from sqlalchemy import text

    DBOS(config={"name": "bench", "system_database_url": POSTGRES, "sys_db_pool_size": AT_ONCE, "log_level": "ERROR",
                 "max_executor_threads": AT_ONCE, "application_version": "1", "run_admin_server": False})  # fmt: skip
    url = POSTGRES.replace("postgresql://", "postgresql+psycopg://")
    source = SQLAlchemyDatasource.create(url, engine_kwargs={"pool_size": AT_ONCE})

    @source.transaction
    def write(event_id: str) -> None:
        source.sql_session().execute(text("INSERT INTO effect (event_id) VALUES (:e)"), {"e": event_id})

    @DBOS.workflow(name="effect")
    def effect(body: dict[str, Any]) -> None:
        write(body["event_id"])

    DBOS.launch()
    client = DBOSClient(system_database_url=POSTGRES, system_database_pool_size=AT_ONCE)
    made = bodies()

    def publish() -> None:
        for body in made:
            options = {
                "workflow_name": "effect",
                "queue_name": "effects",
                "workflow_id": body["event_id"],
                "app_version": "1",
            }
            client.enqueue(options, body)

    return timed(publish), watched(
        lambda: DBOS.register_queue("effects", worker_concurrency=AT_ONCE * 8, polling_interval_sec=0.02)
    )


def celery_app() -> tuple[Any, Any]:
    from celery import Celery

    app = Celery("bus_others", broker=BROKER)
    app.conf.update(
        task_acks_late=True, task_ignore_result=True, worker_prefetch_multiplier=64, task_serializer="json",
        broker_connection_retry_on_startup=True, worker_hijack_root_logger=False,
    )  # fmt: skip
    held: list[psycopg.Connection] = []

    @app.task(name="effect", acks_late=True, ignore_result=True)
    def effect(body: dict[str, Any]) -> None:
        if not held:
            held.append(psycopg.connect(POSTGRES, autocommit=True))
        held[0].execute(INSERT, [body["event_id"]])

    return app, effect


def celery_() -> tuple[float, float]:
    app, effect = celery_app()
    made = bodies()

    def publish() -> None:
        with app.producer_pool.acquire(block=True) as producer:
            for body in made:
                effect.apply_async([body], producer=producer)

    published = timed(publish)
    command = [sys.executable, "-m", "celery", "-A", "bus_others:APP", "worker", "-c", "2", "-l", "ERROR",
               "--without-gossip", "--without-mingle", "--without-heartbeat"]  # fmt: skip
    environment = {
        **os.environ,
        "BUS_OTHERS": f"celery|{POSTGRES}|{BROKER}|{EVENTS}",
        "PYTHONPATH": str(Path(__file__).parent),
    }
    workers: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        workers.append(
            subprocess.Popen(
                command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        )

    try:
        return published, watched(begin)
    finally:
        for worker in workers:
            with suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()


def faststream_() -> tuple[float, float]:
    from faststream import AckPolicy
    from faststream.nats import JStream, NatsBroker, PullSub

    stream = JStream(name="BENCH", subjects=["bench.>"], declare=True)

    async def publish() -> tuple[float, float]:
        async with NatsBroker(BROKER, logger=None) as broker:
            await broker.config.connection_state.stream.add_stream(name="BENCH", subjects=["bench.>"])
            made = bodies()
            started = time.perf_counter()
            for at in range(0, len(made), 100):
                await asyncio.gather(
                    *[broker.publish(body, "bench.effect", stream="BENCH") for body in made[at : at + 100]]
                )
            return started, time.perf_counter()

    async def consume() -> None:
        broker = NatsBroker(BROKER, logger=None)
        pool = psycopg_pool.AsyncConnectionPool(POSTGRES, max_size=AT_ONCE, open=False, kwargs={"autocommit": True})
        await pool.open()

        @broker.subscriber(
            "bench.effect", stream=stream, durable="bench", pull_sub=PullSub(batch_size=100), max_workers=AT_ONCE,
            ack_policy=AckPolicy.NACK_ON_ERROR,
        )  # fmt: skip
        async def effect(body: dict[str, Any]) -> None:
            async with pool.connection() as connection:
                await connection.execute(INSERT, [body["event_id"]])

        await broker.start()
        await asyncio.Event().wait()

    started, ended = asyncio.run(publish())
    return int(EVENTS) / (ended - started), watched(lambda: in_thread(lambda: asyncio.run(consume())))


OTHERS = {"procrastinate": procrastinate_, "dbos": dbos_, "celery": celery_, "faststream": faststream_}

if __name__ == "__main__":
    with psycopg.connect(POSTGRES, autocommit=True) as admin:
        admin.execute("DROP TABLE IF EXISTS effect")
        admin.execute("CREATE TABLE effect (event_id TEXT NOT NULL)")
    published, consumed = OTHERS[NAME]()
    print(json.dumps({"published": published, "consumed": consumed}), flush=True)
    os._exit(0)
elif NAME == "celery":
    APP, _ = celery_app()
