"""The Airbyte CDK's declarative source, reading only: what it emits is counted and thrown away, nothing is stored.

    python bench/ingest_airbyte.py SERVER

Runs in an environment of its own, without Patra. Writes one line of JSON.
"""

import json
import logging
import resource
import sys
import time


def main(server: str) -> None:
    logging.disable(logging.CRITICAL)
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
    for message in source.read(logging.getLogger("bench"), {}, catalog, []):
        landed += message.type == Type.RECORD
    found = {"seconds": time.perf_counter() - begun, "cpu": time.process_time() - cpu, "landed": landed}
    print(json.dumps({**found, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main(*sys.argv[1:])
