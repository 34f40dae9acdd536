"""Send ad events to a running Patra as an unreliable SDK does: everything twice, and one event with a field missing.

python settle_ad_events.py [http://127.0.0.1:8642]
"""

import sys
from datetime import UTC, datetime

import urllib3

url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8642"
retries = urllib3.Retry(20, backoff_factor=0.2, backoff_max=2, allowed_methods=None)  # the server may be starting
http = urllib3.PoolManager(retries=retries)
now = datetime.now(UTC).isoformat()
keys = {"traceKey": "t1", "requestKey": "r1", "attemptKey": "a1", "opportunityKey": "o1"}
common = {"eventAt": now, "eventVersion": "1", **keys}
rendered = {"responseReference": "answer-1", "renderAttemptId": "render-1", "creativeId": "creative-1"}
batch = {
    "batchId": "batch-1",
    "appId": "shop",
    "sdkVersion": "1.0",
    "sentAt": now,
    "schemaVersion": "1",
    "events": [
        {"eventId": "e1", "eventType": "opportunity_created", "placementKey": "home", **common},
        {"eventId": "e2", "eventType": "impression", **common, **rendered},
        {"eventId": "e3", "eventType": "click", **common, **rendered, "clickTarget": "https://shop.example/"},
        {"eventId": "e4", "eventType": "impression", **common},  # lacks responseReference
    ],
}
print(f"sending to {url}", flush=True)
for attempt in ("first", "again"):
    try:
        response = http.request("POST", f"{url}/events", json=batch)
    except urllib3.exceptions.HTTPError:
        sys.exit(f"no answer from {url}: start `patra up` in another terminal, or name its address")
    answer = response.json()
    if "ackItems" not in answer:  # nothing of the batch was taken, such as without the key of a registered app
        sys.exit(f"{attempt}: {response.status} {answer['code']}: {answer['detail']}")
    for item in answer["ackItems"]:
        print(f"{attempt}: {item['eventId']} {item['ackStatus']:9} {item['ackReasonCode']}")
        for name, value in item.get("extensions", {}).items():  # of a rejected event: what is wrong with it
            print(f"          {name}: {value}")
