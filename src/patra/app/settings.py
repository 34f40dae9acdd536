"""Every setting of Patra as one frozen struct: the name, the type, the default and what it is for stand together.

The reference page of the documentation is made from these structs, so a setting is described here and nowhere else.
Engines add fields to their own section, each as `Annotated[type, Meta(description="…")] = default`.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from patra.app.references import is_reference
from patra.kernel.redact import redact_url

SECRET = {"secret": True}  # Meta(extra=SECRET): never shown, except where it is only a reference
URL = {"url": True}  # Meta(extra=URL): shown without its password

HIDDEN = "(hidden)"


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the settings file."""

    def __repr__(self) -> str:
        values = ", ".join(
            f"{field.name}={shown(field, getattr(self, field.name))!r}" for field in msgspec.structs.fields(type(self))
        )
        return f"{type(self).__name__}({values})"


class StoreSettings(Section, frozen=True):
    """Where everything is kept."""

    url: Annotated[
        str,
        Meta(
            description="The store: `sqlite:///file.db` (relative to the working directory; four slashes for an "
            "absolute path) or `postgresql://user@host/database`. May be a reference: `env:NAME`, `file:PATH`.",
            extra=URL,
        ),
    ] = "sqlite:///patra.db"
    migrate_on_start: Annotated[
        bool,
        Meta(
            description="Apply missing migrations when a process starts. With `false`, a process whose tables are "
            "behind starts but is not ready until `patra migrate` has run."
        ),
    ] = True
    synchronous: Annotated[
        Literal["full", "normal"],
        Meta(
            description="SQLite only. `full`: what was answered survives a power cut. `normal`: it survives a crash of "
            "the process, but the last moments may be lost with the machine's power."
        ),
    ] = "full"
    pool_size: Annotated[
        int, Meta(description="PostgreSQL only: the most connections of one process.", ge=2, le=200)
    ] = 8


class WebSettings(Section, frozen=True):
    """The HTTP interface."""

    host: Annotated[
        str,
        Meta(description="Address to listen on. Anything but a loopback address needs an admin token.", min_length=1),
    ] = "127.0.0.1"
    port: Annotated[int, Meta(description="Port to listen on; 0 takes a free one.", ge=0, le=65535)] = 8642
    max_body_bytes: Annotated[
        int, Meta(description="Largest request body, in bytes; a larger one is answered with 413.", ge=1)
    ] = 1_048_576
    request_seconds: Annotated[
        float,
        Meta(description="Longest time for one request, body included; then 408, 503 or 504 is answered.", gt=0),
    ] = 30.0
    threads: Annotated[
        int, Meta(description="Threads that answer requests; more requests than this wait.", ge=1, le=256)
    ] = 8
    shutdown_seconds: Annotated[
        float,
        Meta(
            description="On SIGTERM: the longest time for requests and loops in hand to finish, together.",
            gt=0,
        ),
    ] = 15.0
    viewer_tokens: Annotated[
        tuple[str, ...],
        Meta(
            description="Bearer tokens that may read: `[NAME=]sha256:HEX`, `[NAME=]env:VARIABLE` or "
            "`[NAME=]file:PATH` (`patra token new viewer` makes one). NAME is written into the audit.",
            extra=SECRET,
        ),
    ] = ()
    operator_tokens: Annotated[
        tuple[str, ...],
        Meta(description="Bearer tokens that may also act (wake, replay, retry); as `viewer_tokens`.", extra=SECRET),
    ] = ()
    admin_tokens: Annotated[
        tuple[str, ...],
        Meta(
            description="Bearer tokens that may do everything; as `viewer_tokens`. With no token of any role, "
            "whoever reaches the loopback address is admin.",
            extra=SECRET,
        ),
    ] = ()


class LogSettings(Section, frozen=True):
    """What is written to standard error."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="Events below this level are not written.")
    ] = "info"
    format: Annotated[
        Literal["auto", "json", "console"],
        Meta(description="`json`: one object a line. `console`: for people. `auto`: console on a terminal, else json."),
    ] = "auto"
    sample_info: Annotated[
        float,
        Meta(description="Share of INFO events that is written, 0 to 1; warnings and errors always are.", ge=0, le=1),
    ] = 1.0


class TelemetrySettings(Section, frozen=True):
    """Traces; metrics are always at `/metrics`."""

    otlp_endpoint: Annotated[
        str,
        Meta(
            description="OpenTelemetry collector that traces are sent to over OTLP/HTTP, such as "
            "`http://localhost:4318/v1/traces`; empty sends none. Needs the extra `patra[otel]`.",
            extra=URL,
        ),
    ] = ""
    service_name: Annotated[str, Meta(description="Name of this service in traces.", min_length=1)] = "patra"


class AttributionSettings(Section, frozen=True):
    """The event and attribution processor (Module F)."""

    archive: Annotated[
        str,
        Meta(
            description="Where output records go: `store` (the store itself, in the transaction of the decision), "
            "`parquet:FOLDER`, the `http://` or `https://` URL of an endpoint that takes them, or `bus` "
            "(each record an event `attribution.record.emitted`).",
            extra=URL,
        ),
    ] = "store"
    archive_key: Annotated[
        str,
        Meta(
            description="What an endpoint that takes output records is told as `Authorization: Bearer`; empty: "
            "nothing. A reference.",
            extra=SECRET,
        ),
    ] = ""
    waiting_batches: Annotated[
        int, Meta(description="Batches that may wait for the writer; more are answered with 503.", ge=1, le=100_000)
    ] = 256
    commit_batches: Annotated[int, Meta(description="The most batches that one commit takes.", ge=1, le=1000)] = 32
    reader_process: Annotated[
        bool,
        Meta(
            description="Read batches in a child process, so that two cores share the work of one server, where there "
            "are two.",
        ),
    ] = True
    timer_lag_seconds: Annotated[
        float,
        Meta(
            description="How far the timer of deadlines stays behind the clock, so that batches which other processes "
            "received before a deadline are decided before it. Deadlines are applied as of their instant all the same.",
            ge=0,
        ),
    ] = 2.0
    keep_log_days: Annotated[
        int,
        Meta(description="Days to keep batches as received, for `patra attribution log export`; 0: for ever.", ge=0),
    ] = 30
    keep_rejects_days: Annotated[
        int, Meta(description="Days to keep rejected and quarantined events; 0: for ever.", ge=0)
    ] = 90
    keep_audits_days: Annotated[
        int, Meta(description="Days to keep audits of dropped events (duplicates, rejections); 0: for ever.", ge=0)
    ] = 0
    keep_facts_days: Annotated[
        int, Meta(description="Days to keep facts with their audits and records; 0: for ever.", ge=0)
    ] = 0
    purge_folder: Annotated[
        str, Meta(description="Folder that the records of purged facts are written to before they go.")
    ] = ""


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
            "every process keeps to the rates for itself, so run executors in one process only. May be a reference. "
            "Needs the extra `patra[redis]`.",
            extra=URL,
        ),
    ] = ""
    server_clock: Annotated[
        Literal["auto", "on", "off"],
        Meta(
            description="Whether leases of tasks go by the store's clock, so that executors on machines whose clocks "
            "differ agree on when one has run out. `auto`: on PostgreSQL."
        ),
    ] = "auto"
    keep_bodies: Annotated[
        bool,
        Meta(
            description="Keep the bodies of answers (up to 16 MiB each) under their hash, compressed, for "
            "`patra ingest replay --kept` and `blackbox`. They hold whatever the provider sends, persons' names and "
            "addresses too."
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
        str, Meta(description="Folder that purged history is written to first, as compressed JSON lines; empty: none.")
    ] = ""


class AlertSettings(Section, frozen=True):
    """Alerts of the ingestion platform: when they fire, and how they are told beside the log."""

    every_seconds: Annotated[float, Meta(description="Time between two looks at the platform.", ge=1, le=3600)] = 30.0
    cursor_lag_seconds: Annotated[
        int,
        Meta(
            description="A HARVEST watermark further behind than this fires, or than its schedule, window and safety "
            "lag explain where that is more.",
            ge=1,
        ),
    ] = 1800
    webhook_url: Annotated[
        str,
        Meta(description="URL that alerts are posted to as JSON; empty: none. May be a reference.", extra=URL),
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


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All sections; each is a table of the settings file."""

    store: StoreSettings = StoreSettings()
    web: WebSettings = WebSettings()
    log: LogSettings = LogSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    attribution: AttributionSettings = AttributionSettings()
    ingest: IngestSettings = IngestSettings()
    alerts: AlertSettings = AlertSettings()
    bus: BusSettings = BusSettings()
    studio: StudioSettings = StudioSettings()


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting, as the reference page and the sources of values see it."""

    section: str
    name: str
    type: Any
    default: Any
    description: str
    secret: bool

    @property
    def key(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        return f"PATRA_{self.section}_{self.name}".upper()


def sections() -> dict[str, type[Section]]:
    return {field.name: field.type for field in msgspec.structs.fields(Settings)}


def every_setting() -> list[Setting]:
    """All settings, in the order in which they are declared."""
    return [
        Setting(
            section=section,
            name=field.name,
            type=field.type,
            default=field.default if field.default is not msgspec.NODEFAULT else field.default_factory(),
            description=_meta(field).description or "",
            secret=_is(field, "secret"),
        )
        for section, struct in sections().items()
        for field in msgspec.structs.fields(struct)
    ]


def shown(field: msgspec.structs.FieldInfo, value: Any) -> Any:
    """The value as it may be printed: secrets hidden, references kept, URLs without passwords."""
    if _is(field, "secret"):
        if isinstance(value, (tuple, list)):
            return [_shown_secret(item) for item in cast("Sequence[object]", value)]
        return _shown_secret(value)
    if _is(field, "url") and value and not is_reference(value):
        return redact_url(value)
    return value


def _shown_secret(value: object) -> object:
    """A secret may carry a name in front (`alice=env:TOKEN`): the name and a reference are no secret."""
    if not value:
        return value
    text = str(value)
    name, mark, secret = ("", "", text) if is_reference(text) else text.rpartition("=")
    return f"{name}{mark}{secret}" if is_reference(secret) else f"{name}{mark}{HIDDEN}"


def _meta(field: msgspec.structs.FieldInfo) -> Meta:
    found = [item for item in getattr(field.type, "__metadata__", ()) if isinstance(item, Meta)]
    return found[0] if found else Meta()


def _is(field: msgspec.structs.FieldInfo, mark: str) -> bool:
    return bool((_meta(field).extra or {}).get(mark))
