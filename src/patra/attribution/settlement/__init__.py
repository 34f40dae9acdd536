"""Money: counts of billable facts, prices, statements that close a period, and comparison with the other side's list.

| module | for |
|---|---|
| `counts` | how many facts of a span, by app, day or placement, counted by the database |
| `rate_card` | pure: which price a fact has |
| `statement` | pure: lines, amounts and hashes of a closed period; verification without the store |
| `reconcile` | pure: the differences between our facts and the counterparty's list |
| `facts` | the facts of a span with everything that they are settled by |
| `dimensions` | pure: counts in any combination of dimensions, with filters |
| `export` | CSV and Parquet |
| `statement_store` | rows: rates, statements, their facts |
| `period` | the shell that closes a period |
| `verified_statements` | which statements are what their hashes say, each looked at once |
| `reconciliation` | the shell of `reconcile`: explains differences by decisions |
"""

from patra.attribution.settlement.counts import By, Settlement, as_csv, as_parquet, settle

__all__ = ["By", "Settlement", "as_csv", "as_parquet", "settle"]
