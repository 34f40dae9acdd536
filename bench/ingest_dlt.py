"""dlt's REST source into DuckDB: as it is installed, or tuned. Runs in an environment of its own, without Patra.

    python bench/ingest_dlt.py SERVER FOLDER default|tuned

Tuned: nested values stay JSON instead of tables of their own, Parquet between the stages, two normalising workers, large
buffers. Both merge by primary key, as an upsert. Writes one line of JSON.
"""

import json
import os
import resource
import sys
import time


def main(server: str, folder: str, how: str) -> None:
    os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
    os.environ["RUNTIME__LOG_LEVEL"] = "ERROR"
    if how == "tuned":
        os.environ["NORMALIZE__WORKERS"] = "2"
        os.environ["DATA_WRITER__BUFFER_MAX_ITEMS"] = "20000"
        os.environ["DATA_WRITER__FILE_MAX_ITEMS"] = "100000"
        os.environ["NORMALIZE__DATA_WRITER__DISABLE_COMPRESSION"] = "true"
    import dlt
    from dlt.sources.rest_api import rest_api_source

    source = rest_api_source(
        {
            "client": {
                "base_url": server,
                "paginator": {
                    "type": "cursor",
                    "cursor_path": "message.'next-cursor'",
                    "cursor_param": "cursor",
                },
            },
            "resources": [
                {
                    "name": "works",
                    "primary_key": "DOI",
                    "write_disposition": {"disposition": "merge", "strategy": "upsert"} if how == "tuned" else "merge",
                    "endpoint": {"path": "works", "data_selector": "message.items"},
                }
            ],
        }
    )
    if how == "tuned":
        source.max_table_nesting = 0
    pipeline = dlt.pipeline(
        f"bench_{how}",
        pipelines_dir=f"{folder}/pipelines",
        destination=dlt.destinations.duckdb(f"{folder}/works.duckdb"),
        dataset_name="bench",
    )
    begun, cpu = time.perf_counter(), time.process_time()
    pipeline.run(source, **({"loader_file_format": "parquet"} if how == "tuned" else {}))
    seconds, cost = time.perf_counter() - begun, time.process_time() - cpu
    with pipeline.sql_client() as client:
        landed = client.execute_sql("SELECT count(*) FROM works")[0][0]
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps({"seconds": seconds, "cpu": cost, "landed": landed, "peak_mb": peak / 1024}))


if __name__ == "__main__":
    main(*sys.argv[1:])
