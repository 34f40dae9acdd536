"""Alerts, archives and model servers reach private addresses only where a setting names them."""

import socket
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from patra.app.bridges import ingest_alerts
from patra.app.configuration.egress_networks import networks, webhook_networks
from patra.app.configuration.engine_settings import AlertSettings, BusSettings
from patra.app.configuration.settings import EgressSettings, Settings
from patra.attribution.contract.reasons import Reason as AttributionReason
from patra.attribution.delivery.http_archive import HttpArchive
from patra.attribution.delivery.port import ArchiveForbiddenError, Retry
from patra.bus.store.groups import Webhook
from patra.kernel import outbox
from patra.kernel.clock import SystemClock
from patra.kernel.errors import ConfigInvalid, Transient
from patra.kernel.safety.networks import networks_of
from patra.studio.profiles import Engine, Profile, load_profiles
from patra.studio.workers.model_client import post_json
from tests.contract.attribution.test_archives import some_records

NAME = "127.1"  # a name to us, which leads to this machine
LOOPBACK = networks_of(["127.0.0.0/8"])


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def nobody_came(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return True
    return False


def message() -> outbox.Pending:
    alert = {"state": "FIRING", "severity": "warning", "alert": "a", "subject": "s", "detail": "d", "advice": "x"}
    body: dict[str, Any] = {**alert, "since": "2026-01-01T00:00:00Z", "fired": None}
    payload = msgspec.json.encode(body)
    return outbox.Pending(seq=1, group_key=b"", key="k", payload=payload, appended_at=0, attempt=0, failed_at=None)


def test_an_archive_by_a_name_that_leads_inside_is_not_called(listener: socket.socket) -> None:
    url = f"http://{NAME}:{listener.getsockname()[1]}/"
    with pytest.raises(ArchiveForbiddenError, match=r"egress\.networks"):
        HttpArchive(url).write(some_records()[:1])
    assert nobody_came(listener)
    named = HttpArchive(url, read=0.05, networks=LOOPBACK)
    assert named.write(some_records()[:1]) == [Retry(AttributionReason.ARCHIVE_TIMEOUT)]
    assert not nobody_came(listener)


def test_a_model_server_by_a_name_that_leads_inside_is_not_called(listener: socket.socket) -> None:
    profile = Profile(
        profile_id="p", worker_type="llm", engine=Engine.OPENAI_CHAT, timeout_seconds=0.05,
        url=f"http://{NAME}:{listener.getsockname()[1]}",
    )  # fmt: skip
    with pytest.raises(Transient, match="AddressRefusedError"):
        post_json(profile, "/", {}, lambda: False)
    assert nobody_came(listener)


def test_profiles_reach_the_networks_of_the_settings_and_their_own(tmp_path: Any) -> None:
    file = tmp_path / "profiles.yaml"
    text = "- {profile_id: v, worker_type: audio, engine: openai-speech, url: 'http://x', networks: [10.0.0.7]}"
    file.write_text(text)
    assert load_profiles(file, ["192.168.0.0/16"])["v"].networks == ("10.0.0.7", "192.168.0.0/16")
    file.write_text(text.replace("10.0.0.7", "nowhere"))
    with pytest.raises(ConfigInvalid, match="networks"):
        load_profiles(file)


@pytest.mark.parametrize("security", ["none", "tls"])
def test_a_mail_server_by_a_name_that_leads_inside_is_not_called(listener: socket.socket, security: Any) -> None:
    settings = AlertSettings(
        email_to=("ops@example.org",),
        email_from="patra@example.org",
        smtp_host=NAME,
        smtp_port=listener.getsockname()[1],
        smtp_security=security,
    )
    assert ingest_alerts.email(settings)(message()) == outbox.Retry("email_not_sent")
    assert nobody_came(listener)


def test_networks_are_read_once_and_a_wrong_one_stops_the_start() -> None:
    settings = Settings(
        egress=EgressSettings(networks=("10.0.0.0/8",)), bus=BusSettings(webhook_networks=("127.0.0.1",))
    )
    assert networks(settings) == networks_of(["10.0.0.0/8"])
    assert webhook_networks(settings) == networks_of(["10.0.0.0/8", "127.0.0.1"])
    with pytest.raises(ConfigInvalid, match=r"egress\.networks"):
        networks(Settings(egress=EgressSettings(networks=("10.0.0.1/8",))))


def test_an_alert_to_a_name_that_leads_inside_is_not_sent(listener: socket.socket) -> None:
    url = f"https://{NAME}:{listener.getsockname()[1]}/"
    way = ingest_alerts.webhook(AlertSettings(webhook_url=url, webhook_hosts=(NAME,)), SystemClock())
    assert way(message()) == outbox.Retry("webhook_unreachable")
    assert nobody_came(listener)


def test_the_path_of_an_alert_webhook_is_in_no_line_of_the_log(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is a reference, since it is the key of a chat service, its value is no more to be read."""
    monkeypatch.setenv("HOOK", f"https://{NAME}:{listener.getsockname()[1]}/services/k3y")
    way = ingest_alerts.webhook(AlertSettings(webhook_url="env:HOOK", webhook_hosts=(NAME,)), SystemClock())
    with capture_logs() as lines:
        way(message())
    assert [line["event"] for line in lines] == ["ingest_alert_not_delivered"]
    assert "k3y" not in str(lines)


def test_the_secrets_of_a_webhook_are_in_no_text_of_it() -> None:
    hook = Webhook(
        name="n",
        url="https://u:pass-word@x.test/",
        secret="whsec_abc",
        created_by="me",
        created_at=1,
        old_secret="whsec_old",
    )
    for text in (repr(hook), str(hook), f"{hook}"):
        assert "whsec" not in text
        assert "pass-word" not in text
