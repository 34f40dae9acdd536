"""What a page leaves behind; each batch is one transaction (ch. 9.3, 11).

| module | for |
|---|---|
| `page_records` | items become records, or go to the isolation store (ch. 12.5) |
| `records` | business key and overwriting: new, newer, equal, older (ch. 11.1) |
| `watermark` | the next watermark: never over a hole (ch. 10, I2) |
| `cursor_store` | cursor events, each once, and the present value (ch. 7.7, 7.8, 10.3, 11.4) |
| `run_state` | states, statistics and checkpoint of runs and batches (ch. 7.9.2, 9.2, 14.3.1) |
| `evidence` | digests and counts of a batch (ch. 14.3) |
| `window_ledger`, `size_report` | what a window came to (I10); its size, for the next estimate (ch. 4.16, I3) |
| `list_keys` | which records the pages of an unfinished list brought (I10) |
| `batch_commit`, `store` | one transaction per batch (ch. 9.4, 11.2); the SQL of executors |
| `identifiers` | the DOI and the short id that a record is found by |
| `topics` | which records the searches of a topic found |
| `change_messages` | outbox messages about a batch or a halted source (ch. 9.4, 12.6) |
"""
