"""Read a settlement in a program: impressions and clicks of each placement, from a running Patra.

python read_settlement.py http://127.0.0.1:8642 2026-01-01 2100-01-01
"""

import sys

import urllib3

url, begin, end = sys.argv[1:]
asked = {"begin": f"{begin}T00:00:00Z", "end": f"{end}T00:00:00Z", "by": "placement"}
settled = urllib3.request("GET", f"{url}/attribution/settlement", fields=asked).json()
for line in settled["lines"]:
    print(f"{line['placement']}: {line['impressions']} impressions, {line['clicks']} clicks")
