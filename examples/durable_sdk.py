"""An app that loses no event: they wait in a file until the server has them, also if the app is killed.

python durable_sdk.py http://127.0.0.1:8642
"""

import sys
from datetime import UTC, datetime

from patra import DurableClient

keys = {"traceKey": "t9", "requestKey": "r9", "attemptKey": "a9", "opportunityKey": "o9"}
rendered = {"responseReference": "answer-9", "renderAttemptId": "render-9", "creativeId": "creative-1"}
event = {"eventId": "e9", "eventType": "impression", "eventAt": datetime.now(UTC).isoformat(), "eventVersion": "1"}

client = DurableClient(sys.argv[1], app_id="shop", path="events.queue", on_answer=lambda one: print(one.status))
client.add(event | keys | rendered)
print("sent" if client.flush(20.0) else f"{client.waiting} wait in events.queue for the next start")
client.close()
