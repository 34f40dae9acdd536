#!/bin/sh
# The harvested works for reference managers, spreadsheets and notebooks: the ending of the file tells the format.
patra ingest works --dedupe --out library.bib
patra ingest works --dedupe --out library.ris
patra ingest works --dedupe --out library.csv
patra ingest works --dedupe --out otters.duckdb
