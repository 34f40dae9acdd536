"""Read the metrics of a running Patra: what is behind, what has failed.

python read_metrics.py http://127.0.0.1:8642 [NAME …]
"""

import sys

import urllib3

url, wanted = sys.argv[1], sys.argv[2:] or ["patra_attribution_events_total"]
for line in urllib3.request("GET", f"{url}/metrics").data.decode().splitlines():
    if line.startswith(tuple(wanted)):
        print(line)
