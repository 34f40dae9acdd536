"""The JavaScript client in Node and in Chromium: killed, throttled, unloaded, and nothing lost or sent under two ids.

`./dev prove javascript_client` has both against a real server that is throttled and killed.
"""

import json
import resource
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route

from patra.attribution.event_schema import typescript
from patra.attribution.intake.checked_event import Event
from patra.attribution.intake.envelope import Envelope
from patra.attribution.intake.validate import Rejected, check_event
from patra.kernel.clock import SystemClock
from tests.contract.attribution.test_client import Endpoint, endpoint
from tests.contract.attribution.test_http import fresh_event
from tests.e2e.process import PATIENCE

CLIENT = Path(__file__).parents[3] / "clients" / "javascript"
NODE = shutil.which("node") or ""
MINUTE_MS = 60_000

NOWHERE = "http://127.0.0.1:9"
NOT_NOW = (503, {"Retry-After": "3600"}, "")

needs_node = pytest.mark.skipif(not NODE, reason="node is not installed (Debian: nodejs)")

ADD = """
import { createClient } from "%s/src/node.js";
const [url, path, appId, key] = process.argv.slice(2);
const client = createClient({ url, path, appId, key: key || undefined,
  onAnswer: ({ event, status, code }) => console.log(`${event.eventId} ${status} ${code}`) });
let text = "";
for await (const part of process.stdin) text += part;
const taken = await Promise.all(JSON.parse(text).map((event) => client.add(event)));
if (!taken.every(Boolean)) throw new Error("not taken");
console.log("added");
if (!(await client.flush(240_000))) throw new Error("not answered");
await client.close();
"""


@contextmanager
def node(folder: Path, events: list[dict[str, Any]], *args: str) -> Iterator[subprocess.Popen[str]]:
    """A program that adds events, says so, and prints what became of each."""
    program = folder / "add.mjs"
    program.write_text(ADD % CLIENT)
    with subprocess.Popen(
        [NODE, str(program), *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder
    ) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(events))
        process.stdin.close()
        try:
            yield process
        finally:
            process.kill()


def lines(process: subprocess.Popen[str], most: int = -1) -> list[str]:
    assert process.stdout is not None
    found: list[str] = []
    while len(found) != most and (line := process.stdout.readline()):
        found.append(line.strip())
    return found


def served(context: BrowserContext, url: str) -> Page:
    """A page of the server's origin with the client's modules, whatever the server does."""

    def fulfill(route: Route) -> None:
        path = CLIENT / route.request.url.partition("/client/")[2].partition("?")[0]
        route.fulfill(body=path.read_text(), content_type="text/html" if path.suffix == ".html" else "text/javascript")

    context.route("**/client/**", fulfill)
    page = context.new_page()
    page.goto(f"{url}/client/samples/browser.html")
    return page


CREATE = """async ([events, options]) => {
  const { createClient } = await import("/client/src/browser.js");
  window.answers = [];
  window.client = createClient({ url: location.origin, queue: "test", ...options,
    onAnswer: ({ event, status, code }) => window.answers.push([event.eventId, status, code]) });
  const taken = await Promise.all(events.map((event) => window.client.add(event)));
  if (!taken.every(Boolean)) throw new Error("not taken");
}"""


def sent_in(server: Endpoint, event_id: str) -> int:
    """How often an event has arrived."""
    return sum(one["eventId"] == event_id for batch in server.batches for one in batch["events"])


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < limit
        threading.Event().wait(0.05)


def test_the_types_are_those_that_the_contract_gives():
    assert (CLIENT / "src" / "events.d.ts").read_text() == typescript()


@needs_node
def test_pauses_double_and_vary_and_the_server_may_ask_for_others():
    program = f"""
import {{ pauseMs, retryAfterMs }} from "{CLIENT}/src/node.js";
const now = Date.parse("2026-01-01T00:00:00Z");
console.log(JSON.stringify([
  [1, 2, 8, 9].map((attempts) => pauseMs(attempts, null, () => 1)), pauseMs(1, null, () => 0),
  pauseMs(1, retryAfterMs("7")), pauseMs(1, retryAfterMs("99999")), pauseMs(1, retryAfterMs("0"), () => 1),
  retryAfterMs("Thu, 01 Jan 2026 00:00:05 GMT", now), retryAfterMs("soon"), retryAfterMs(null),
]));"""
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", program], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert json.loads(done.stdout) == [[500, 1000, 60_000, 60_000], 250, 7000, 3_600_000, 500, 5000, None, None]


@needs_node
def test_events_of_a_killed_node_process_go_out_in_order_under_the_batch_that_they_had(tmp_path: Path):
    events = [fresh_event("impression", f"i{n}", renderAttemptId=f"ra{n}") for n in range(120)]
    with endpoint() as (server, url):
        with node(tmp_path, events, NOWHERE, "queue", "app") as process:
            assert lines(process, 1) == ["added"]
            process.kill()
        kept = [json.loads(line) for line in (tmp_path / "queue").read_text().splitlines()]
        with node(tmp_path, [], url, "queue", "app") as process:
            told = [line for line in lines(process) if line != "added"]
            assert process.wait(PATIENCE) == 0
        assert told == [f"i{n} accepted f_accepted" for n in range(120)]
        sent = [(batch["batchId"], event["eventId"]) for batch in server.batches for event in batch["events"]]
        assert sent == [(batch, json.loads(body)["eventId"]) for _, batch, body in kept]
        assert max(len(batch["events"]) for batch in server.batches) <= 100
        assert [len(route) for route in set(server.routes)] == [32]  # one for all requests


@needs_node
def test_a_second_process_is_refused_and_a_torn_line_left_out(tmp_path: Path):
    with endpoint() as (_, url):
        with node(tmp_path, [fresh_event("click", "c")], NOWHERE, "queue", "app") as process:
            assert lines(process, 1) == ["added"]
            with node(tmp_path, [], NOWHERE, "queue", "app") as other:
                assert other.wait(PATIENCE) != 0
            process.kill()
        with (tmp_path / "queue").open("a") as file:
            file.write('[2,"b","{\\"eventId\\":')
        with node(tmp_path, [], url, "queue", "app") as process:
            assert lines(process) == ["added", "c accepted f_accepted"]


FULL_DISK = """
import { createInterface } from "node:readline";
import { FileQueue } from "%s/src/node.js";
const steps = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const queue = new FileQueue("queue");
await queue.append("b", '"first"');
console.log("ready");
await steps.next();
try {
  await queue.append("b", JSON.stringify("x".repeat(20000)));
  console.log("stored");
} catch (error) {
  console.log(error.code);
}
await steps.next();
await queue.append("b", '"after"');
console.log("stored");
process.exit(0);
"""


@needs_node
def test_a_full_disk_refuses_an_event_and_costs_no_later_one_its_line(tmp_path: Path):
    command = [NODE, "--input-type=module", "-e", FULL_DISK % CLIENT]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, text=True, bufsize=1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        room = (tmp_path / "queue").stat().st_size + 5000
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (room, hard))
        process.stdin.write("go\n")
        assert process.stdout.readline() == "EFBIG\n"
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        process.stdin.write("go\n")
        assert process.stdout.readline() == "stored\n"
        assert process.wait(PATIENCE) == 0
    kept = [json.loads(line) for line in (tmp_path / "queue").read_text().splitlines()]
    assert [body for _, _, body in kept] == ['"first"', '"after"']


def run_node(program: str, folder: Path, *options: str) -> list[str]:
    """What a program with the client's modules prints."""
    command = [NODE, *options, "--input-type=module", "-e", program.replace("CLIENT", str(CLIENT))]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


REOPENED = """
import { mkdirSync, writeFileSync } from "node:fs";
import { FileQueue } from "CLIENT/src/node.js";
writeFileSync("queue.lock", String(process.pid)); // a process with the same number was killed, as in a container
writeFileSync("queue", '[7,"b","1"]\\n[8,"b","torn');
mkdirSync("queue.next"); // no room for a new file
const queue = new FileQueue("queue");
try {
  new FileQueue("./queue");
} catch (error) {
  console.log(error.constructor.name);
}
await queue.append("b", "2");
await queue.close();
const again = new FileQueue("queue");
console.log((await again.load()).map(({ seq, body }) => `${seq} ${body}`).join());
await again.close();
"""


@needs_node
def test_a_lock_of_the_same_process_number_and_a_full_disk_keep_nobody_from_their_queue(tmp_path: Path):
    assert run_node(REOPENED, tmp_path) == ["QueueInUseError", "7 1,8 2"]


COMPACTED = """
import { statSync } from "node:fs";
import { FileQueue } from "CLIENT/src/node.js";
const queue = new FileQueue("queue");
await queue.append("b", "first");
for (let n = 0; n < 30; n += 1) await queue.remove([await queue.append("b", "x".repeat(100_000))]);
console.log(statSync("queue").size < 2_500_000);
await queue.append("b", "last");
await queue.close();
const again = new FileQueue("queue");
console.log((await again.load()).map(({ body }) => body).join());
await again.close();
"""


@needs_node
def test_the_file_does_not_grow_without_end_while_it_is_never_empty(tmp_path: Path):
    assert run_node(COMPACTED, tmp_path) == ["true", "first,last"]


STOPPED = """
import { createServer } from "node:http";
import { createClient } from "CLIENT/src/node.js";
const server = createServer(() => asked()); // never answers
let asked;
const arrived = new Promise((resolve) => (asked = resolve));
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${server.address().port}`;
const client = createClient({ url, appId: "app", path: "queue", timeoutMs: 1e9 });
await client.add({ eventId: "a" });
await arrived;
const now = Date.now;
const flushed = client.flush(20);
Date.now = () => now() - 3_600_000; // the clock is set back
console.log(await flushed, await client.close(20), client.waiting);
process.exit(0);
"""


@needs_node
def test_flush_and_close_are_bounded_in_the_middle_of_a_request_and_when_the_clock_is_set_back(tmp_path: Path):
    # as Node 18 is, which has no global `crypto`
    assert run_node(STOPPED, tmp_path, "--no-experimental-global-webcrypto") == ["false false 1"]


@needs_node
def test_a_refused_key_costs_no_event(tmp_path: Path):
    program = """
import { createClient } from "CLIENT/src/node.js";
const told = [];
const open = (key) => createClient({ url: "URL", appId: "app", path: "queue", key,
  onAnswer: ({ event, code }) => told.push(event.eventId, code), onError: (error) => told.push(error.message) });
const old = open("old");
await old.add({ eventId: "a" });
while (!told.length) await new Promise((resolve) => setTimeout(resolve, 5));
await old.close(0);
const client = open("new");
console.log(await client.flush(60_000), told.join());
await client.close();
"""
    with endpoint() as (server, url):
        server.script = [(403, {"Retry-After": "3600"}, {"code": "f_app_key_foreign"})]
        told = run_node(program.replace("URL", url), tmp_path)
    assert told == ["true the server refuses the key: f_app_key_foreign,a,f_accepted"]
    assert len({batch["batchId"] for batch in server.batches}) == 1


def test_a_page_that_goes_away_sends_what_is_left_and_the_next_page_takes_it_over(context: BrowserContext):
    with endpoint() as (server, url):
        server.script = [NOT_NOW] * 1000
        context.add_init_script("delete Crypto.prototype.randomUUID")  # as a page of an insecure origin
        page = served(context, url)
        page.evaluate(CREATE, [[fresh_event("click", "c1"), fresh_event("click", "c2")], {"appId": "app"}])
        until(lambda: sent_in(server, "c2") >= 1)
        assert page.evaluate("client.waiting") == 2
        page.goto(f"{url}/client/samples/browser.html?again")
        until(lambda: sent_in(server, "c2") >= 2)  # by the beacon
        server.script = []
        page.evaluate(CREATE, [[], {"appId": "app"}])
        assert page.evaluate(f"client.flush({MINUTE_MS})")
        assert sorted(page.evaluate("answers")) == [["c1", "accepted", "f_accepted"], ["c2", "accepted", "f_accepted"]]
        by_event: dict[str, set[str]] = {}
        for batch in server.batches:
            for one in batch["events"]:
                by_event.setdefault(one["eventId"], set()).add(batch["batchId"])
        assert {name: len(ids) for name, ids in by_event.items()} == {"c1": 1, "c2": 1}
        assert sent_in(server, "c2") >= 3


def test_two_pages_at_once_send_what_is_their_own(context: BrowserContext):
    with endpoint() as (server, url):
        server.script = [NOT_NOW] * 1000
        first = served(context, url)
        first.evaluate(CREATE, [[fresh_event("click", "c1")], {"appId": "app"}])
        until(lambda: sent_in(server, "c1") >= 1)
        server.script = []
        second = served(context, url)
        second.evaluate(CREATE, [[fresh_event("click", "c2")], {"appId": "app"}])
        assert second.evaluate(f"client.flush({MINUTE_MS})")
        assert second.evaluate("answers") == [["c2", "accepted", "f_accepted"]]
        assert first.evaluate("client.waiting") == 1
        assert first.evaluate("client.close(0)") is False


@needs_node
def test_the_sample_program_sends_an_impression_and_its_click(tmp_path: Path):
    with endpoint() as (server, url):
        shown = subprocess.run(
            [NODE, str(CLIENT / "samples" / "node.mjs"), url, "app"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
    assert [line.split() for line in shown.stdout.splitlines()] == [
        ["impression", "accepted", "f_accepted"],
        ["click", "accepted", "f_accepted"],
    ]
    sent = [one for batch in server.batches for one in batch["events"]]
    taken = [checked_event(one) for one in sent]
    assert [one.type for one in taken if isinstance(one, Event)] == ["impression", "click"]


def test_the_sample_page_sends_an_impression_and_its_click(context: BrowserContext):
    with endpoint() as (server, url):
        page = served(context, url)
        page.click("#ad")
        page.wait_for_function(
            "document.querySelector('#answers').textContent.split('accepted f_accepted').length == 3",
            timeout=PATIENCE * 1000,
        )
    sent = [one for batch in server.batches for one in batch["events"]]
    taken = [checked_event(one) for one in sent]
    assert [one.type for one in taken if isinstance(one, Event)] == ["impression", "click"]


def checked_event(sent: dict[str, Any]) -> Event | Rejected:
    """What the intake makes of an event that was sent just now."""
    envelope = Envelope(batch_id="b", app_id="app", uniqueness=None, events=[sent])
    return check_event(sent, 0, envelope, SystemClock().now())
