"""The attribution engine inside a program of your own: no server, one file.

python embed_attribution.py
"""

import json
from datetime import UTC, datetime

from patra import AttributionEngine, Settings, build

now = datetime.now(UTC).isoformat()
event = {
    "eventId": "e1", "eventType": "impression", "eventAt": now, "eventVersion": "1", "traceKey": "t1",
    "requestKey": "r1", "attemptKey": "a1", "opportunityKey": "o1", "responseReference": "answer-1",
    "renderAttemptId": "render-1", "creativeId": "creative-1",
}  # fmt: skip
batch = {"batchId": "b1", "appId": "shop", "sdkVersion": "1", "sentAt": now, "schemaVersion": "1", "events": [event]}

patra = build(Settings())  # ./patra.db
engine = AttributionEngine(patra.db, patra.clock)
try:
    for attempt in ("first", "again"):
        answer = engine.submit(json.dumps(batch).encode()).result()  # on disk before there is an answer
        print(attempt, [(item.eventId, item.ackStatus.value) for item in answer.ackItems])
finally:
    engine.close()
    patra.close(10)
