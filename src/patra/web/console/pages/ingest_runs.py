"""The lower end of the way down: a task with its runs, a run with its batches, a batch with request and answer."""

from typing import Any, cast

from patra.kernel.safety.untrusted_text import integer_of
from patra.web.console.markup.run_lane import run_lane
from patra.web.console.view import PAGE_SIZE, Page, View


def failed_share(counts: dict[str, int]) -> str:
    """Of the tasks that ran to an end; empty where none failed."""
    failed = counts.get("FAILED", 0)
    ended = failed + counts.get("SUCCEEDED", 0) + counts.get("PARTIAL", 0)
    return f"{max(100 * failed / ended, 0.1):.1f} %" if failed else ""


def task(view: View) -> Page:
    found = view.ask("/ingest/tasks/{task}", {"task": view.path["task"]})
    return Page(title=f"Task {found['task_id']}", template="ingest/task.html", values={"task": found})


def run(view: View) -> Page:
    after = view.filter_value("after", "0")
    asked = {"after": "" if integer_of(after) is None else after, "limit": PAGE_SIZE}
    found = view.ask("/ingest/runs/{run}", {"run": view.path["run"]}, **asked)
    return Page(
        title=f"Run {found['run_id']}",
        template="ingest/run.html",
        values={
            "run": found,
            "lane": run_lane(found["run_id"], found["batches"]),
            "older": view.here(after=found["next"]) if found["next"] else "",
        },
    )


def batch(view: View) -> Page:
    number = view.path["number"]
    found: dict[str, Any] = view.ask("/ingest/runs/{run}/batches/{batch}", {"run": view.path["run"], "batch": number})
    of = {"task": str(found["task_id"])}
    task: dict[str, Any] | None = view.part("task", lambda: view.ask("/ingest/tasks/{task}", of))
    found["provenance_code"] = task["provenance_code"] if task else ""
    tab = view.filter_value("tab", "exchange")
    return Page(
        title=f"Batch {number} of {view.path['run']}",
        template="ingest/batch.html",
        values={
            "batch": found,
            "request": request_text(found["request_digest"]),
            "tab": tab,
            "tabs": ("exchange", "effects", "cursor", "all"),
        },
    )


def request_text(digest: Any) -> str:
    """A request as it goes over the wire, as far as it may be shown: its line, then its headers."""
    if not isinstance(digest, dict):
        return ""
    said = cast("dict[str, Any]", digest)
    if "refused" in said:
        return f"not sent: {said['refused']}"
    url = str(said.get("url") or said.get("urlTemplate") or "")
    path, _, query = url.partition("?")
    lines = [f"{said.get('method', '')} {path}".strip()]
    lines += [f"  {'&' if number else '?'}{part}" for number, part in enumerate(query.split("&")) if part]
    return "\n".join([*lines, "", *(str(one) for one in said.get("headers") or ())]).strip()
