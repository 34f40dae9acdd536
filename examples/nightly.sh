#!/bin/sh
# What is new on a topic since the last night, into one DuckDB file. Every night at three, by `crontab -e`:
#   0 3 * * *  cd /home/me/papers && PATH=/home/me/patra/.venv/bin:$PATH sh /home/me/patra/examples/nightly.sh
patra ingest run pubmed search --param term=otters
patra ingest run crossref works --param query=otters
patra ingest run openalex works --param search=otters
patra ingest works --dedupe --out otters.duckdb
