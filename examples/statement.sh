#!/bin/sh
# Prices, the statement of a day that is over, and its check without the store. DAY is an argument: sh statement.sh 2026-11-16
patra attribution rate add impression 2500 EUR --from 2026-01-01 --json
patra attribution rate add click 150000 EUR --from 2026-01-01 --json
patra attribution period close "$1" --app shop
patra attribution statement export "$1" --app shop --out statement.json
patra attribution statement verify statement.json
