"""Publish an event over HTTP, with nothing but an HTTP library; sent again, it is the same event.

python publish_over_http.py http://127.0.0.1:8642
"""

import sys

import urllib3

event = {
    "event_type": "task.submitted",
    "event_version": "1.0",
    "producer": "Gateway",
    "tenant_id": "acme",
    "project_id": "p1",
    "idempotency_key": "task-1",
    "payload": {
        "task_id": "task_01",
        "chapter_id": "ch_07",
        "requested_quality": "standard",
        "language_context": {"source_language": "en", "subtitle_languages": ["en"]},
        "chapter": {"title": "Otters", "uri": "file:///otters.txt", "sha256": "0" * 64, "characters": 5120},
    },
}
for attempt in ("first", "again"):
    answer = urllib3.request("POST", f"{sys.argv[1]}/bus/events", json=event)
    print(attempt, answer.status, answer.json())
