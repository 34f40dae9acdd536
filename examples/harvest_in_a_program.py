"""Harvest from a program of your own, and read the works.

    patra ingest pack load crossref.yaml
    python harvest_in_a_program.py

`python -m patra.demo.providers_http` plays the provider and writes crossref.yaml.
"""

from patra import IngestOperation, IngestTrigger, build, ingest_run, load_settings, read_works

DAY = 24 * 3600 * 1_000_000  # instants are microseconds since 1970, UTC
patra = build(load_settings().settings)
try:
    now = patra.clock.now() // DAY * DAY
    wanted = IngestTrigger(
        source="crossref", endpoint="works", operation=IngestOperation.BACKFILL, since=now - 2 * DAY, until=now,
        params={"query": "otters"},
    )  # fmt: skip
    done = ingest_run(patra).run(wanted, lambda progress: None)
    print("done" if not done.left else f"left: {done.left}")
    print(sum(len(page) for page in read_works(patra.db, ["crossref"])), "works")
finally:
    patra.close(10)
