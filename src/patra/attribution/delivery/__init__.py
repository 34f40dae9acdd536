"""Output records on their way to an archive outside the store (§3.8.29).

| module | for |
|---|---|
| `port` | what an archive is asked and answers |
| `http_archive`, `parquet_archive` | archives behind an HTTP endpoint, in a folder |
| `record_status` | the status of a record by what the archive answered (§3.8.27) |
| `relay` | sends records in order, retries, gives up after the last retry |
| `reissue` | an operator issues again what the archive did not take |
"""
