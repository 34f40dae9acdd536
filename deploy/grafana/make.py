"""Makes the Grafana dashboards of this folder from the table below: `python deploy/grafana/make.py`.

A dashboard is rows of panels; a panel is a title, a unit and its queries. `tests/unit/test_deploy.py` holds the files to this table and
the queries to the metrics that the code declares.
"""

import json
import sys
from pathlib import Path

DASHBOARDS = {
    "patra-overview": (
        "Patra: overview",
        [
            ("Requests per second", "reqps", [("sum by (path) (rate(patra_http_requests_total[5m]))", "{{path}}")]),
            (
                "Request latency p99",
                "s",
                [
                    (
                        "histogram_quantile(0.99, sum by (le, path) (rate(patra_http_request_seconds_bucket[5m])))",
                        "{{path}}",
                    )
                ],
            ),
            (
                "Errors (5xx) per second",
                "reqps",
                [('sum by (path, status) (rate(patra_http_requests_total{status=~"5.."}[5m]))', "{{path}} {{status}}")],
            ),
            (
                "Failed loop turns per second",
                "ops",
                [('sum by (loop) (rate(patra_loop_turns_total{result="failed"}[5m]))', "{{loop}}")],
            ),
            (
                "Longest loop turn p99",
                "s",
                [
                    (
                        "histogram_quantile(0.99, sum by (le, loop) (rate(patra_loop_turn_seconds_bucket[5m])))",
                        "{{loop}}",
                    )
                ],
            ),
        ],
    ),
    "patra-attribution": (
        "Patra: attribution",
        [
            (
                "Events per second by answer",
                "ops",
                [("sum by (status) (rate(patra_attribution_events_total[1m]))", "{{status}}")],
            ),
            (
                "Rejected events per second by code",
                "ops",
                [('sum by (code) (rate(patra_attribution_events_total{status="rejected"}[5m]))', "{{code}}")],
            ),
            (
                "Refused batches per second by code",
                "ops",
                [("sum by (code) (rate(patra_attribution_batches_refused_total[5m]))", "{{code}}")],
            ),
            (
                "Batches waiting for the writer",
                "short",
                [("sum by (instance) (patra_attribution_waiting_batches)", "{{instance}}")],
            ),
            (
                "Commit latency",
                "s",
                [
                    ("histogram_quantile(0.5, sum by (le) (rate(patra_attribution_commit_seconds_bucket[5m])))", "p50"),
                    (
                        "histogram_quantile(0.99, sum by (le) (rate(patra_attribution_commit_seconds_bucket[5m])))",
                        "p99",
                    ),
                ],
            ),
            (
                "Batches per commit p50",
                "short",
                [("histogram_quantile(0.5, sum by (le) (rate(patra_attribution_commit_batches_bucket[5m])))", "p50")],
            ),
            (
                "Deadlines applied per second",
                "ops",
                [("sum(rate(patra_attribution_deadlines_total[5m]))", "deadlines")],
            ),
            (
                "Records delivered to the archive per second",
                "ops",
                [("sum by (outcome) (rate(patra_attribution_records_total[5m]))", "{{outcome}}")],
            ),
        ],
    ),
    "patra-ingest": (
        "Patra: ingest",
        [
            (
                "Records per second by outcome",
                "ops",
                [("sum by (source, action) (rate(patra_ingest_items_total[5m]))", "{{source}} {{action}}")],
            ),
            (
                "Batches per minute",
                "opm",
                [
                    (
                        "60 * sum by (source, endpoint, op) (rate(patra_ingest_batches_total[5m]))",
                        "{{source}}/{{endpoint}} {{op}}",
                    )
                ],
            ),
            (
                "Queue",
                "short",
                [("sum by (source, endpoint, op) (patra_ingest_tasks_queued)", "{{source}}/{{endpoint}} {{op}}")],
            ),
            (
                "Running tasks",
                "short",
                [
                    (
                        "sum by (source, endpoint, op) (patra_ingest_executor_concurrency)",
                        "{{source}}/{{endpoint}} {{op}}",
                    )
                ],
            ),
            (
                "Watermark lag",
                "s",
                [
                    (
                        "max by (source, endpoint, op, ns) (patra_ingest_cursor_lag_seconds)",
                        "{{source}}/{{endpoint}} {{op}}",
                    )
                ],
            ),
            (
                "Allowed rate",
                "reqps",
                [("max by (source, endpoint) (patra_ingest_qps_effective)", "{{source}}/{{endpoint}}")],
            ),
            (
                "Waiting for the rate gate",
                "percentunit",
                [
                    (
                        "sum by (source, endpoint) (rate(patra_ingest_rate_wait_ms_total[5m])) / 1000",
                        "{{source}}/{{endpoint}}",
                    )
                ],
            ),
            (
                "429 per second",
                "ops",
                [("sum by (source, endpoint) (rate(patra_ingest_429_total[5m]))", "{{source}}/{{endpoint}}")],
            ),
            (
                "Errors per second by level",
                "ops",
                [("sum by (source, level) (rate(patra_ingest_errors_total[5m]))", "{{source}} {{level}}")],
            ),
            (
                "Provider latency p95",
                "ms",
                [
                    (
                        "histogram_quantile(0.95, sum by (le, source, endpoint) (rate(patra_ingest_http_latency_ms_bucket[5m])))",
                        "{{source}}/{{endpoint}}",
                    )
                ],
            ),
            (
                "Batch latency p95",
                "ms",
                [
                    (
                        "histogram_quantile(0.95, sum by (le, source, endpoint) (rate(patra_ingest_batch_latency_ms_bucket[5m])))",
                        "{{source}}/{{endpoint}}",
                    )
                ],
            ),
            (
                "Requests left in the quota",
                "short",
                [("min by (source, endpoint) (patra_ingest_budget_remaining)", "{{source}}/{{endpoint}}")],
            ),
            (
                "Self-healing per hour",
                "short",
                [("3600 * sum by (type) (rate(patra_ingest_self_heal_events_total[1h]))", "{{type}}")],
            ),
        ],
    ),
    "patra-bus": (
        "Patra: bus",
        [
            (
                "Published per second",
                "ops",
                [("sum by (event_type, result) (rate(patra_bus_published_total[5m]))", "{{event_type}} {{result}}")],
            ),
            (
                "Consumed per second",
                "ops",
                [("sum by (group, result) (rate(patra_bus_consumed_total[5m]))", "{{group}} {{result}}")],
            ),
            ("Backlog by group", "short", [("sum by (group) (patra_bus_waiting)", "{{group}}")]),
            ("Lag by group", "s", [("max by (group) (patra_bus_lag_seconds)", "{{group}}")]),
            ("Dead letters waiting", "short", [("sum by (event_type) (patra_bus_dead_letters)", "{{event_type}}")]),
            (
                "Freezes per hour",
                "short",
                [
                    (
                        "3600 * sum by (event_type, became) (rate(patra_bus_freezes_total[1h]))",
                        "{{event_type}} {{became}}",
                    )
                ],
            ),
        ],
    ),
}
COLUMNS, WIDTH, HEIGHT = 2, 12, 8


def dashboard(uid: str, title: str, panels: list[tuple[str, str, list[tuple[str, str]]]]) -> dict[str, object]:
    source = {"type": "prometheus", "uid": "${source}"}
    return {
        "uid": uid,
        "title": title,
        "tags": ["patra"],
        "timezone": "utc",
        "refresh": "30s",
        "schemaVersion": 39,
        "time": {"from": "now-3h", "to": "now"},
        "templating": {
            "list": [{"name": "source", "type": "datasource", "query": "prometheus", "label": "Data source"}]
        },
        "panels": [
            {
                "id": index + 1,
                "type": "timeseries",
                "title": name,
                "datasource": source,
                "gridPos": {"x": index % COLUMNS * WIDTH, "y": index // COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT},
                "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
                "targets": [
                    {"refId": chr(ord("A") + n), "datasource": source, "expr": query, "legendFormat": legend}
                    for n, (query, legend) in enumerate(queries)
                ],
            }
            for index, (name, unit, queries) in enumerate(panels)
        ],
    }


def files() -> dict[str, str]:
    """File name → content of every dashboard."""
    return {
        f"{uid}.json": json.dumps(dashboard(uid, title, panels), indent=2) + "\n"
        for uid, (title, panels) in DASHBOARDS.items()
    }


if __name__ == "__main__":
    folder = Path(__file__).parent
    for name, content in files().items():
        (folder / name).write_text(content)
        sys.stdout.write(f"{name}\n")
