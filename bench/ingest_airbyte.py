"""The Airbyte CDK's declarative source. Reading only: what it emits is counted and thrown away, nothing is stored.

    python bench/ingest_airbyte.py SERVER [STORE]

With a STORE, what it emits is written as the plain loop writes, a hundred records a commit: what one would do with it.
Runs in an environment of its own, without Patra. Writes one line of JSON.
"""

import json
import logging
import resource
import sys
import time
from itertools import islice

from ingest_upsert import sqlite


def main(server: str, store: str | None = None) -> None:
    logging.disable(logging.CRITICAL)
    import orjson  # the CDK brings it
    from airbyte_cdk.models import (
        AirbyteStream,
        ConfiguredAirbyteCatalog,
        ConfiguredAirbyteStream,
        DestinationSyncMode,
        SyncMode,
        Type,
    )
    from airbyte_cdk.sources.declarative.concurrent_declarative_source import ConcurrentDeclarativeSource

    schema = {"type": "object", "additionalProperties": True, "properties": {"DOI": {"type": "string"}}}
    manifest = {
        "version": "6.0.0",
        "type": "DeclarativeSource",
        "check": {"type": "CheckStream", "stream_names": ["works"]},
        "streams": [
            {
                "type": "DeclarativeStream",
                "name": "works",
                "primary_key": ["DOI"],
                "schema_loader": {"type": "InlineSchemaLoader", "schema": schema},
                "retriever": {
                    "type": "SimpleRetriever",
                    "requester": {
                        "type": "HttpRequester",
                        "url_base": server,
                        "path": "/works",
                        "http_method": "GET",
                    },
                    "record_selector": {
                        "type": "RecordSelector",
                        "extractor": {"type": "DpathExtractor", "field_path": ["message", "items"]},
                    },
                    "paginator": {
                        "type": "DefaultPaginator",
                        "page_token_option": {
                            "type": "RequestOption",
                            "inject_into": "request_parameter",
                            "field_name": "cursor",
                        },
                        "pagination_strategy": {
                            "type": "CursorPagination",
                            "cursor_value": "{{ response['message']['next-cursor'] }}",
                            "stop_condition": "{{ not response['message']['next-cursor'] }}",
                        },
                    },
                },
            }
        ],
        "spec": {
            "type": "Spec",
            "connection_specification": {"type": "object", "properties": {}, "additionalProperties": True},
        },
    }
    catalog = ConfiguredAirbyteCatalog(
        streams=[
            ConfiguredAirbyteStream(
                stream=AirbyteStream(name="works", json_schema=schema, supported_sync_modes=[SyncMode.full_refresh]),
                sync_mode=SyncMode.full_refresh,
                destination_sync_mode=DestinationSyncMode.append,
            )
        ]
    )
    begun, cpu, landed = time.perf_counter(), time.process_time(), 0
    source = ConcurrentDeclarativeSource(catalog=catalog, config={}, state=[], source_config=manifest)
    messages = source.read(logging.getLogger("bench"), {}, catalog, [])
    records = (message.record.data for message in messages if message.type == Type.RECORD)
    if store is None:
        landed = sum(1 for _ in records)
    else:
        write, close = sqlite(store)
        while page := list(islice(records, 100)):
            write([(item["DOI"], item["indexed"]["date-time"], orjson.dumps(item)) for item in page])
            landed += len(page)
        close()
    found = {"seconds": time.perf_counter() - begun, "cpu": time.process_time() - cpu, "landed": landed}
    print(json.dumps({**found, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main(*sys.argv[1:])
