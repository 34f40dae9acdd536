"""Rows past their retention as Parquet files in a folder or in object storage, each with an index and a checksum.

| module | for |
|---|---|
| `parquet_rows` | rows as the bytes of a Parquet file, and back |
| `files` | the files of a place: written, verified, read; one row for each in the store |
| `kinds` | what a kind of rows has to say; lines of the log |
| `log_partitions` | partitions of the log on PostgreSQL, which leave the store whole |
| `decisions` | decisions past their retention: which go, their records, their deletion |
| `settled_facts` | billable facts of closed periods, and what is left of their closures |
| `export` | the steps: fix a span, write its file, verify it, delete its rows |
| `log_lines` | the log out of the files, and back into the store |
| `ask` | SQL over the files, by DuckDB |
| `row_search` | rows by kind, time and key, page by page |
"""
