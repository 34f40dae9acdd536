#!/bin/sh
# Why did this batch give what it gave? Its evidence, and the same batch again without any effect.
#   sh replay_batch.sh RUN BATCH       `patra ingest errors` and the console name both; bodies: ingest.keep_bodies
patra ingest blackbox "$1" "$2" --why "looked into" -o evidence
patra ingest replay "$1" "$2" --kept
