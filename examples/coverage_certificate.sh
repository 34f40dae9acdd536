#!/bin/sh
# Which windows of a source were read, whether their counts add up, and a certificate that anybody can check.
patra ingest coverage crossref works
patra ingest coverage crossref --out crossref-coverage.json
patra ingest coverage verify crossref-coverage.json
