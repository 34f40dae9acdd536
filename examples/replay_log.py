"""Decide a log again, elsewhere: the same log gives the same bytes. Useful in a dispute, and before an upgrade.

patra attribution log export --out log.jsonl
python replay_log.py log.jsonl
"""

import sys
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from patra import build, load_settings, replay

with TemporaryDirectory() as folder, Path(sys.argv[1]).open("rb") as log:
    elsewhere = build(load_settings(overrides={"store.url": f"sqlite:///{folder}/replay.db"}).settings)
    output = replay(log, elsewhere.db)
    elsewhere.close(5)
print(f"{len(output.acks)} batches, {len(output.billable)} billable facts, sha256 of the facts:")
print(sha256(msgspec.json.encode(output.billable)).hexdigest())
