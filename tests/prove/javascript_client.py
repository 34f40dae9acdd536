"""The JavaScript client in Node and Chromium against a server that is throttled and killed: nothing lost, nothing twice."""

import signal
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from patra.app.wiring import packages
from patra.attribution.app_keys import add_key
from patra.kernel.db import migrate, open_database
from tests.contract.attribution.test_http import fresh_event
from tests.e2e.clients.test_javascript import CREATE, lines, node, served, until
from tests.e2e.conftest import CHROMIUM, FLAGS
from tests.e2e.process import PATIENCE, up

EVENTS = 220  # three batches: the second and the third come sooner than the limit allows
LIMITS = {"PATRA_ATTRIBUTION_APP_BATCHES_PER_SECOND": "0.5"}


def prove(folder, context):
    db = open_database(f"sqlite:///{folder}/patra.db")
    migrate(db, packages())
    keys = {app: db.run(lambda tx, app=app: add_key(tx, app, 0)) for app in ("node", "page")}
    db.close()
    events = {
        app: [
            fresh_event("impression", f"{app}{n}", responseReference=app, renderAttemptId=f"{n}") for n in range(EVENTS)
        ]
        for app in keys
    }
    with up(folder, **LIMITS) as server:
        url, port = server.url, server.url.rpartition(":")[2]
        page = served(context, url)
        page.evaluate(CREATE, [events["page"], {"appId": "page", "key": keys["page"], "compress": False}])
        with node(folder, events["node"], url, "queue", "node", keys["node"]) as process:
            told = lines(process, 100)
            page.wait_for_function("answers.length >= 100", timeout=PATIENCE * 1000)
            server.signal(signal.SIGKILL)
            server.popen.wait(PATIENCE)
            with up(folder, "up", "--port", port, **LIMITS) as again:
                told += lines(process)
                assert process.wait(PATIENCE) == 0
                page.wait_for_function(f"answers.length >= {EVENTS}", timeout=PATIENCE * 1000)
                answered = [line.split() for line in told if line != "added"]
                for app, answers in (("node", answered), ("page", page.evaluate("answers"))):
                    assert [one[0] for one in answers] == [f"{app}{n}" for n in range(EVENTS)]
                    assert {one[1] for one in answers} <= {"accepted", "duplicate"}
                expected = sorted(f"{app}|{n}|billable_impression" for app in keys for n in range(EVENTS))
                assert billed(again) == expected
                until(lambda: again.get("/attribution/turned-away").json()["batches"])
                codes = {one["code"] for one in again.get("/attribution/turned-away").json()["batches"]}
                assert codes == {"f_intake_overloaded"}


def billed(process):
    found = []
    after = -1
    while after is not None:
        answer = process.get(f"/attribution/facts/billable?limit=1000&after={after}").json()
        found += [one["billingKey"] for one in answer["items"]]
        after = answer["next"]
    return sorted(found)


def main():
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        prove(Path(folder), browser.new_context())
        browser.close()
    return f"{2 * EVENTS} events, each billed once"
