"""Turns alerts of the ingest platform into calls of a webhook and e-mails, each alert once for every way (14.8).

The watch puts a message for every way into the outbox, in the transaction that changes the alert; here they are
delivered, again until they arrive or their time is over. Secrets come by reference and are in the call alone.
"""

import base64
import hmac
import smtplib
import socket
import ssl
from collections.abc import Callable, Sequence
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from patra.app.component import Context
from patra.app.configuration.egress_networks import networks
from patra.app.configuration.engine_settings import AlertSettings
from patra.app.configuration.secrets import resolve
from patra.app.configuration.settings_section import without_path
from patra.kernel import outbox
from patra.kernel.canonical import sha256_hex
from patra.kernel.clock import DAY, MINUTE, SECOND, Clock
from patra.kernel.db import Database
from patra.kernel.errors import ConfigInvalid
from patra.kernel.retry import DelayTable
from patra.kernel.safety.redact import redact_text
from patra.kernel.telemetry import counter, get_logger

if TYPE_CHECKING:
    from patra.kernel.safety.networks import Network

log = get_logger()

WEBHOOK = "ingest.alert.webhook"
EMAIL = "ingest.alert.email"
POLICY = outbox.Policy(delays=DelayTable((SECOND, 10 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE)), window=DAY)
CALL_TIMEOUT_S = 10.0  # for one call
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

TOLD = counter(
    "patra_ingest_alerts_told_total", "Alerts delivered, by way and result (delivered, retry).", "way", "result"
)

Way = Callable[[outbox.Pending], outbox.Delivered | outbox.Retry | outbox.Refused]


def channels(settings: AlertSettings) -> tuple[str, ...]:
    """The ways that are configured, beside the log."""
    return tuple(name for name, there in ((WEBHOOK, settings.webhook_url), (EMAIL, settings.email_to)) if there)


def relays(ground: Context) -> dict[str, outbox.Relay]:
    """A relay for each way. Raises ConfigInvalid where a way cannot work as it is configured."""
    settings, allowed = ground.settings.alerts, networks(ground.settings)
    made: dict[str, Way] = {}
    if settings.webhook_url:
        made[WEBHOOK] = webhook(settings, ground.clock, allowed)
    if settings.email_to:
        made[EMAIL] = email(settings, allowed)
    return {name: _relay(ground.db, ground.clock, name, way) for name, way in made.items()}


def _relay(db: Database, clock: Clock, channel: str, way: Way) -> outbox.Relay:
    return outbox.Relay(db, channel, outbox.one_by_one(_counting(channel, way)), POLICY, clock)


def _counting(channel: str, way: Way) -> Way:
    def send(message: outbox.Pending) -> outbox.Delivered | outbox.Retry | outbox.Refused:
        outcome = way(message)
        result = "delivered" if isinstance(outcome, outbox.Delivered) else "retry"
        TOLD.labels(way=channel.rpartition(".")[2], result=result).inc()
        return outcome

    return send


# --- webhook


def webhook(settings: AlertSettings, clock: Clock, allowed: "Sequence[Network]" = ()) -> Way:
    """POST an alert as JSON to the configured URL, on one of the allowed hosts, signed where there is a secret."""
    import urllib3  # noqa: PLC0415  only a process that calls one needs it

    from patra.kernel.safety.egress import pool_for  # noqa: PLC0415

    url = _check_host(resolve(settings.webhook_url, "alerts.webhook_url"), settings.webhook_hosts)
    secret = resolve(settings.webhook_secret, "alerts.webhook_secret") if settings.webhook_secret else ""
    pool = pool_for(url, allowed, timeout=urllib3.Timeout(total=CALL_TIMEOUT_S), retries=False)

    def send(message: outbox.Pending) -> outbox.Delivered | outbox.Retry:
        headers = {
            "content-type": "application/json",
            "user-agent": "patra",
            **signature_headers(secret, sha256_hex(message.key)[:32], clock.now() // SECOND, message.payload),
        }
        try:
            answer = pool.request("POST", url, body=message.payload, headers=headers, redirect=False)
        except urllib3.exceptions.HTTPError as error:
            log.warning("ingest_alert_not_delivered", way="webhook", url=without_path(url), error=type(error).__name__)
            return outbox.Retry("webhook_unreachable")
        if 200 <= answer.status < 300:
            return outbox.Delivered()
        log.warning("ingest_alert_not_delivered", way="webhook", url=without_path(url), status=answer.status)
        return outbox.Retry("webhook_status")

    return send


def signature_headers(secret: str, identifier: str, stamp: int, body: bytes) -> dict[str, str]:
    """Headers of Standard Webhooks: the id stays the same when a call is made again."""
    headers = {"webhook-id": identifier, "webhook-timestamp": str(stamp)}
    if secret:
        key = base64.b64decode(secret[6:]) if secret.startswith("whsec_") else secret.encode()
        digest = hmac.digest(key, f"{identifier}.{stamp}.".encode() + body, "sha256")
        headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    return headers


def _check_host(url: str, hosts: Sequence[str]) -> str:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme not in {"http", "https"} or not host:
        raise ConfigInvalid("config_wrong_value", "it is not an http or https URL", place="alerts.webhook_url")
    if host not in hosts:
        raise ConfigInvalid(
            "config_host_not_allowed",
            f"the host {host} is not among the allowed ones",
            place="alerts.webhook_url",
            advice=f"add it: alerts.webhook_hosts = ['{host}']",
        )
    if parts.scheme == "http" and host not in LOOPBACK:
        raise ConfigInvalid(
            "config_insecure",
            "alerts would go over the network in the open",
            place="alerts.webhook_url",
            advice="use https",
        )
    return url


# --- e-mail


def email(settings: AlertSettings, allowed: "Sequence[Network]" = ()) -> Way:
    """Send an alert as a plain e-mail through the configured server."""
    if not settings.smtp_host or not settings.email_from:
        place = "alerts.smtp_host" if not settings.smtp_host else "alerts.email_from"
        raise ConfigInvalid("config_missing", "e-mail needs a server and a sender", place=place)
    password = resolve(settings.smtp_password, "alerts.smtp_password") if settings.smtp_password else ""
    if password and settings.smtp_security == "none" and settings.smtp_host not in LOOPBACK:
        raise ConfigInvalid(
            "config_insecure",
            "the password would go over the network in the open",
            place="alerts.smtp_security",
            advice="use starttls or tls",
        )

    def send(message: outbox.Pending) -> outbox.Delivered | outbox.Retry | outbox.Refused:
        email = compose_email(msgspec.json.decode(message.payload), message.key, settings)
        try:
            with _server(settings, allowed) as server:
                if settings.smtp_user:
                    server.login(settings.smtp_user, password)
                server.send_message(email)
        except (smtplib.SMTPException, OSError) as error:
            why = redact_text(str(error))[:200]
            log.warning("ingest_alert_not_delivered", way="email", server=settings.smtp_host, error=why)
            return outbox.Retry("email_not_sent")
        return outbox.Delivered()

    return send


def _server(settings: AlertSettings, allowed: "Sequence[Network]") -> smtplib.SMTP:
    from patra.kernel.safety.egress import connect_checked  # noqa: PLC0415  only where an e-mail is sent
    from patra.kernel.safety.networks import networks_named_by  # noqa: PLC0415  only where an e-mail is sent

    host, port = settings.smtp_host, settings.smtp_port
    reachable = (*allowed, *networks_named_by(host))

    class Plain(smtplib.SMTP):
        def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
            return connect_checked(host, port, reachable, timeout)

    class Secure(smtplib.SMTP_SSL, Plain):
        pass

    if settings.smtp_security == "tls":
        return Secure(host, port, timeout=CALL_TIMEOUT_S, context=ssl.create_default_context())
    server = Plain(host, port, timeout=CALL_TIMEOUT_S)
    if settings.smtp_security == "starttls":
        server.starttls(context=ssl.create_default_context())
    return server


def compose_email(alert: dict[str, Any], key: str, settings: AlertSettings) -> EmailMessage:
    """The e-mail: the same alert gives the same Message-ID, so that a second delivery is recognised as one."""
    email = EmailMessage()
    over = alert["state"] == "OVER"
    email["Subject"] = _line(
        f"[patra] {'over: ' if over else ''}{alert['severity']}: {alert['alert']} {alert['subject']}"
    )
    email["From"] = settings.email_from
    email["To"] = ", ".join(settings.email_to)
    email["Message-ID"] = f"<{sha256_hex(key)[:32]}@patra.alerts>"
    lines = [alert["detail"], "", f"since  {alert['since']}", f"fired  {alert['fired'] or '-'}"]
    lines += [f"over   {alert['over']}"] if over else ["", f"What to do: {alert['advice']}"]
    email.set_content("\n".join(_line(line) for line in lines) + "\n")
    return email


def _line(text: str) -> str:
    return " ".join(redact_text(text).split())
