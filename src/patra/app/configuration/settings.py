"""Every setting of Patra as one frozen struct: the name, the type, the default and what it is for stand together.

The reference page of the documentation is made from these structs, so a setting is described here, or in
`engine_settings.py` beside it, and nowhere else.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from patra.app.configuration.engine_settings import (
    AlertSettings,
    AttributionSettings,
    BusSettings,
    HealingSettings,
    IngestSettings,
    StudioSettings,
)
from patra.app.configuration.secrets import is_reference
from patra.app.configuration.settings_section import SECRET, URL, Section, is_marked, meta_of
from patra.kernel.safety.known_secrets import know_secret


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
    silent_seconds: Annotated[
        float,
        Meta(
            description="PostgreSQL only: after this time in one transaction its server is asked for another "
            "connection; if it gives none, it counts as lost, and what waits for it fails or is tried on another host.",
            ge=0.1,
        ),
    ] = 10.0


class WebSettings(Section, frozen=True):
    """The HTTP interface."""

    host: Annotated[
        str,
        Meta(description="Address to listen on. Anything but a loopback address needs an admin token.", min_length=1),
    ] = "127.0.0.1"
    port: Annotated[int, Meta(description="Port to listen on; 0 takes a free one.", ge=0, le=65535)] = 8642
    public_url: Annotated[
        str,
        Meta(
            description="URL under which others reach Patra through a proxy, such as `https://patra.example.org`. Its "
            "host may stand in `Host`, its origin in `Origin`. Needs an admin token; nothing is open then."
        ),
    ] = ""
    trusted_proxies: Annotated[
        tuple[str, ...],
        Meta(
            description="Addresses or networks of proxies in front of Patra: their `X-Forwarded-For` names the client, "
            "and they may hold any number of connections. Needs an admin token; nothing is open then."
        ),
    ] = ()
    allowed_hosts: Annotated[
        tuple[str, ...],
        Meta(
            description="Further host names that a request's `Host` may carry, beside loopback names, the address "
            "that was reached, `web.host` and the host of `web.public_url`; any other is answered with 421."
        ),
    ] = ()
    max_body_bytes: Annotated[
        int, Meta(description="Largest request body, in bytes; a larger one is answered with 413.", ge=1)
    ] = 1_048_576
    request_seconds: Annotated[
        float,
        Meta(description="Longest time for one request, body included; then 408, 503 or 504 is answered.", gt=0),
    ] = 30.0
    max_header_bytes: Annotated[
        int, Meta(description="Largest header of a request with its URL, in bytes; else 431.", ge=1024)
    ] = 32_768
    max_headers: Annotated[int, Meta(description="The most header fields of a request; else 431.", ge=8)] = 100
    header_seconds: Annotated[
        float, Meta(description="Longest time from a connection's beginning to a whole header; else 408.", gt=0)
    ] = 10.0
    idle_seconds: Annotated[
        float, Meta(description="How long a connection may wait for its next request before it is closed.", ge=1)
    ] = 20.0
    max_connections: Annotated[
        int,
        Meta(
            description="The most connections at once. For one more the one that has waited longest for a request is "
            "closed; where none waits, 503 is answered.",
            ge=1,
        ),
    ] = 512
    max_connections_per_address: Annotated[
        int,
        Meta(
            description="The most connections of one address, likewise; `web.trusted_proxies` are exempt.",
            ge=1,
        ),
    ] = 256
    threads: Annotated[
        int, Meta(description="Threads that answer requests; more requests than this wait.", ge=1, le=256)
    ] = 8
    shutdown_seconds: Annotated[
        float,
        Meta(
            description="On SIGTERM: the longest time for running requests and loops to finish, together.",
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
    publisher_tokens: Annotated[
        tuple[str, ...],
        Meta(
            description="Bearer tokens that may publish events and do nothing else; as `viewer_tokens`, with a NAME "
            "that stands in `bus.publishers`, which says for whom it may speak.",
            extra=SECRET,
        ),
    ] = ()
    admin_tokens: Annotated[
        tuple[str, ...],
        Meta(
            description="Bearer tokens that may do everything; as `viewer_tokens`. With no token of any role, "
            "every program that reaches the loopback address is admin.",
            extra=SECRET,
        ),
    ] = ()
    tokens_required: Annotated[
        bool,
        Meta(
            description="Every request needs a token, also where the settings name none: those that the store keeps "
            "(`patra token new ROLE --name NAME --store`) let people in. Nothing is open then."
        ),
    ] = False
    requests_per_second_per_address: Annotated[
        float,
        Meta(
            description="Requests a second of one address, as one process counts them; more are answered with 429 and "
            "`Retry-After`. 0: no bound. Behind `web.trusted_proxies` the client's address counts.",
            ge=0,
        ),
    ] = 0.0
    requests_per_second_per_token: Annotated[
        float,
        Meta(description="Likewise of one bearer token, app key or console session. 0: no bound.", ge=0),
    ] = 0.0
    request_burst: Annotated[
        int, Meta(description="How many requests may come at once before these rates count.", ge=1)
    ] = 100


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


class EgressSettings(Section, frozen=True):
    """Where Patra's own calls may go: webhooks, alerts, HTTP archives, model servers, sources."""

    networks: Annotated[
        tuple[str, ...],
        Meta(
            description="Networks that may be called beside public addresses, such as `10.0.0.0/8`. Loopback, private "
            "and link-local addresses outside them are refused; an address or `localhost` in a URL of the settings "
            "names itself, and so does one among the `hosts` of a pack."
        ),
    ] = ()


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All sections; each is a table of the settings file."""

    store: StoreSettings = StoreSettings()
    web: WebSettings = WebSettings()
    log: LogSettings = LogSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    attribution: AttributionSettings = AttributionSettings()
    ingest: IngestSettings = IngestSettings()
    healing: HealingSettings = HealingSettings()
    alerts: AlertSettings = AlertSettings()
    bus: BusSettings = BusSettings()
    studio: StudioSettings = StudioSettings()
    egress: EgressSettings = EgressSettings()


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
            description=meta_of(field).description or "",
            secret=is_marked(field, "secret"),
        )
        for section, struct in sections().items()
        for field in msgspec.structs.fields(struct)
    ]


def know_secrets(settings: Settings) -> None:
    """Make the secrets that stand in the settings themselves known, so that they are scrubbed from every text."""
    for setting in every_setting():
        value = getattr(getattr(settings, setting.section), setting.name)
        for text in cast("Sequence[object]", value) if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and not is_reference(text) and (setting.secret or "://" in text):
                know_secret(text)
