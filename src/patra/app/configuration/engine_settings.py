"""The settings of the engines: one section each, and one for alerts.

A field is added as `Annotated[type, Meta(description="…")] = default`; the reference page is made from it.
"""

from typing import Annotated, Literal

from msgspec import Meta

from patra.app.configuration.attribution_settings import AttributionSettings
from patra.app.configuration.settings_section import SECRET, SECRET_PATH, URL, Section

__all__ = [
    "AlertSettings",
    "AttributionSettings",
    "BusSettings",
    "HealingSettings",
    "IngestSettings",
    "PublisherSettings",
    "StudioSettings",
]


class IngestSettings(Section, frozen=True):
    """The literature ingestion platform."""

    executors: Annotated[
        int,
        Meta(
            description="Tasks that one process works on at the same time, each in a loop `ingest.executor.N`; all "
            "processes together work on the sum. 0: this process plans and relays, and leaves tasks to others.",
            ge=0,
            le=64,
        ),
    ] = 2
    partition_tasks: Annotated[
        int,
        Meta(
            description="Tasks of one partition (source, endpoint and operation) at the same time, in all processes "
            "together. A pack's own `maxConcurrency` may be tighter.",
            ge=1,
            le=1000,
        ),
    ] = 4
    redis_url: Annotated[
        str,
        Meta(
            description="Redis that holds the rate gate of all processes, such as `redis://localhost:6379/0`; empty: "
            "the database keeps them on PostgreSQL, and the one process on SQLite. May be a reference. "
            "Needs the extra `patra[redis]`.",
            extra=URL,
        ),
    ] = ""
    lease_seconds: Annotated[
        float,
        Meta(
            description="How long the lease of a task lasts. It is renewed while the task runs; what a killed process "
            "worked on is free again after this time.",
            ge=5,
            le=3600,
        ),
    ] = 30.0
    server_clock: Annotated[
        Literal["auto", "on", "off"],
        Meta(
            description="Whether leases of tasks go by the store's clock, so that executors on machines whose clocks "
            "differ agree on when one has run out. `auto`: on PostgreSQL."
        ),
    ] = "auto"
    cache_snapshots: Annotated[
        bool,
        Meta(
            description="Keep compiled snapshots in memory and use one again where a trigger says the same of the same "
            "pack. Off: rows of the registry that are changed by hand, without loading a pack, count at once."
        ),
    ] = False
    keep_bodies: Annotated[
        bool,
        Meta(
            description="Keep the bodies of answers (up to 16 MiB each) under their hash, compressed, for "
            "`patra ingest replay --kept` and `blackbox`. They hold whatever the provider sends, persons' names and "
            "addresses too; a body that repeats a secret of this process is not kept."
        ),
    ] = False
    keep_bodies_mb: Annotated[
        int, Meta(description="Most megabytes of kept bodies; the oldest go first. Looked at every ten seconds.", ge=1)
    ] = 1024
    keep_history_days: Annotated[
        int,
        Meta(
            description="Days to keep batches, runs of finished tasks, cursor events, settled quarantine rows, kept "
            "bodies and alerts that are over; 0: for ever.",
            ge=0,
        ),
    ] = 90
    keep_records_days: Annotated[
        int,
        Meta(description="Days to keep a record after it last changed; 0: for ever.", ge=0),
    ] = 0
    history_folder: Annotated[
        str,
        Meta(
            description="Folder that history past its time is moved to, as compressed JSON lines with an index "
            "(`patra ingest history`). Empty: it is deleted."
        ),
    ] = "patra-history"
    history_url: Annotated[
        str,
        Meta(
            description="Object storage that history past its time is moved to instead of the folder, such as "
            "`s3://bucket/history`. Needs the extra `patra[s3]`.",
            extra=URL,
        ),
    ] = ""


class HealingSettings(Section, frozen=True):
    """When an ingestion partition (source, endpoint and operation) counts as unwell, over the last five minutes."""

    throttled_percent: Annotated[
        float, Meta(description="More answers with 429 than this lower its rate and its concurrency.", ge=0, le=100)
    ] = 5.0
    refused_percent: Annotated[
        float, Meta(description="More refused requests (4xx) than this stop its task.", ge=0, le=100)
    ] = 10.0
    min_requests: Annotated[
        int, Meta(description="Requests, or commits, below which a share or a mean says nothing.", ge=1)
    ] = 20
    slow_batch_ms: Annotated[
        int, Meta(description="Batches that take longer on average lower its concurrency and its page size.", ge=1)
    ] = 3000
    slow_database_ms: Annotated[
        int, Meta(description="Commits of batches that take longer on average lower its concurrency.", ge=1)
    ] = 200
    deeper_factor: Annotated[
        int, Meta(description="Slices with this many times the estimated pages are cut smaller.", ge=1)
    ] = 3
    circuit_failures: Annotated[
        int, Meta(description="Failures in a row that open the circuit of an endpoint.", ge=1)
    ] = 3
    circuit_seconds: Annotated[
        float, Meta(description="Shortest time that an open circuit stays so; jitter adds up to as much again.", ge=1)
    ] = 60.0


class AlertSettings(Section, frozen=True):
    """Alerts of the ingestion platform: when they fire, and where they are sent beside the log."""

    every_seconds: Annotated[float, Meta(description="Time between two looks at the platform.", ge=1, le=3600)] = 30.0
    cursor_lag_seconds: Annotated[
        int,
        Meta(
            description="A HARVEST watermark further behind than this fires, or than its schedule, window and safety "
            "lag explain where that is more.",
            ge=1,
        ),
    ] = 1800
    failing_runs: Annotated[
        int,
        Meta(description="An endpoint fires when this many of its runs ended in a day, and all of them failed.", ge=1),
    ] = 3
    errors_percent: Annotated[
        float,
        Meta(description="A partition fires when more of its batches than this fail for ten minutes.", ge=0, le=100),
    ] = 5.0
    throttled_percent: Annotated[
        float,
        Meta(
            description="A partition fires when more of its answers than this are 429 for five minutes.", ge=0, le=100
        ),
    ] = 5.0
    budget_percent: Annotated[float, Meta(description="A quota with less than this left fires.", ge=0, le=100)] = 10.0
    plan_idle_seconds: Annotated[
        int, Meta(description="A plan whose tasks are due and are not started for this long fires.", ge=1)
    ] = 1800
    undelivered_seconds: Annotated[
        int, Meta(description="A delivery to an archive, the bus or a receiver that fails for this long fires.", ge=1)
    ] = 300
    webhook_url: Annotated[
        str,
        Meta(description="URL that alerts are posted to as JSON; empty: none. May be a reference.", extra=SECRET_PATH),
    ] = ""
    webhook_hosts: Annotated[
        tuple[str, ...], Meta(description="Hosts that the webhook's URL may name; it is refused on any other.")
    ] = ()
    webhook_secret: Annotated[
        str,
        Meta(
            description="Key of the signature (Standard Webhooks, HMAC-SHA256); empty: none. A reference.",
            extra=SECRET,
        ),
    ] = ""
    email_to: Annotated[tuple[str, ...], Meta(description="Addresses that alerts are mailed to; empty: none.")] = ()
    email_from: Annotated[str, Meta(description="Sender of these mails.")] = ""
    smtp_host: Annotated[str, Meta(description="Mail server that takes them.")] = ""
    smtp_port: Annotated[int, Meta(description="Port of the mail server.", ge=1, le=65535)] = 587
    smtp_security: Annotated[
        Literal["starttls", "tls", "none"], Meta(description="How the connection to it is made safe.")
    ] = "starttls"
    smtp_user: Annotated[str, Meta(description="User at the mail server; empty: no login.")] = ""
    smtp_password: Annotated[str, Meta(description="Password of that user. A reference.", extra=SECRET)] = ""


class PublisherSettings(Section, frozen=True):
    """For whom a token may publish, and for which groups it may consume (B7)."""

    producers: tuple[str, ...]
    tenants: tuple[str, ...]
    forwards: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class BusSettings(Section, frozen=True):
    """The event bus."""

    catalogue: Annotated[
        tuple[str, ...],
        Meta(description="Folders with contracts of your own (`*.yaml`), beside the ones that come with Patra."),
    ] = ()
    nats_url: Annotated[
        str,
        Meta(
            description="NATS server with JetStream, such as `nats://localhost:4222`, that carries events between "
            "stores; `tls://` for a certificate, `nats://name:password@` or `nats://token@` where it asks for one; the "
            "servers of a cluster with commas between them. "
            "Empty: the store itself carries them. May be a reference.",
            extra=URL,
        ),
    ] = ""
    nats_stream: Annotated[
        str, Meta(description="Name of the JetStream stream; it is made when it is not there.", min_length=1)
    ] = "PATRA_BUS"
    nats_credentials: Annotated[
        str,
        Meta(
            description="Where the server asks for a key: a reference (`file:` or `env:`) to the text of a credentials "
            "file (JWT and seed) or to the seed of an nkey.",
            extra=SECRET,
        ),
    ] = ""
    nats_replicas: Annotated[
        int,
        Meta(
            description="On how many servers of a cluster the stream is kept: 1, 3 or 5. A stream that has fewer gets "
            "them; one that has more keeps them.",
            ge=1,
            le=5,
        ),
    ] = 1
    lag_warning_seconds: Annotated[
        float,
        Meta(description="A group whose oldest event waits for longer than this is a warning of the doctor.", gt=0),
    ] = 900.0
    keep_keys_days: Annotated[
        int,
        Meta(
            description="Days to keep the key of an event whose body is past its retention, so that the same "
            "`idempotency_key` is not published twice. At least 30; 0: for ever.",
            ge=0,
        ),
    ] = 0
    keep_settled_dead_letters_days: Annotated[
        int,
        Meta(
            description="Days to keep a dead letter after it was replayed or discarded, with the copy of its event; an "
            "open one stays. 0: for ever.",
            ge=0,
        ),
    ] = 0
    publishers: Annotated[
        dict[str, PublisherSettings],
        Meta(
            description="Who may publish for whom: a table `[bus.publishers.NAME]` with `producers`, `tenants` and "
            "`forwards` (modules whose events it may pass on), lists of names each, `*` for all; `groups` are the "
            "consumer groups for which it may take its tenants' events. NAME is that of a token in "
            "`web.publisher_tokens`."
        ),
    ] = {}  # noqa: RUF012
    webhook_networks: Annotated[
        tuple[str, ...],
        Meta(
            description="Networks that webhooks may be in beside public addresses, such as `10.0.0.0/8`; loopback, "
            "private and link-local addresses outside them are not called."
        ),
    ] = ()
    webhook_keys: Annotated[
        tuple[str, ...],
        Meta(
            description="References (`env:NAME`, `file:PATH`) to keys that the signing secrets of webhooks are derived "
            "from, the newest first; the store then holds no secret. Without a key they stand in the store in clear.",
            extra=SECRET,
        ),
    ] = ()


class StudioSettings(Section, frozen=True):
    """The chapter-to-video pipeline."""

    folder: Annotated[
        str, Meta(description="Folder for artifacts: clips, sound, films and their manifests.", min_length=1)
    ] = "patra-studio"
    artifacts_url: Annotated[
        str,
        Meta(
            description="Object storage that keeps a copy of every artifact, such as `s3://bucket/films`; the copy is "
            "the one that events name. Empty: the folder alone. Needs the extra `patra[s3]`.",
            extra=URL,
        ),
    ] = ""
    profiles: Annotated[
        str, Meta(description="YAML file with model profiles beside the built-in ones, for model servers.")
    ] = ""
    workers: Annotated[
        int, Meta(description="Video workers of one process; the other kinds have one each.", ge=1, le=64)
    ] = 2
    max_characters: Annotated[int, Meta(description="Longest chapter, in characters.", ge=1)] = 200_000
    max_attempts: Annotated[
        int, Meta(description="How often a job is tried on one profile before the next one is asked.", ge=1, le=20)
    ] = 3
    job_seconds: Annotated[float, Meta(description="Longest time for one job.", gt=0)] = 3600.0
    lease_seconds: Annotated[
        float, Meta(description="How long a silent worker keeps its job; it renews four times as often.", ge=1)
    ] = 20.0
