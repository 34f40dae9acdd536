"""A server at a private address that no setting names is refused at the start and by the doctor, with what to do."""

import socket
from pathlib import Path

import pytest

from patra.app.component import Health
from patra.app.configuration.egress_targets import refused_targets, targets
from patra.app.configuration.engine_settings import AlertSettings, AttributionSettings, StudioSettings
from patra.app.configuration.settings import EgressSettings, Settings, StoreSettings
from patra.app.configuration.settings_loader import Loaded
from patra.app.doctor import examine
from patra.cli.serving.process import run
from patra.kernel.errors import ConfigInvalid

NAME = "127.1"  # a name to us, which leads to this machine


def settings(tmp_path: Path, **more: object) -> Settings:
    profiles = tmp_path / "profiles.yaml"
    profiles.write_text(f"- {{profile_id: v, worker_type: audio, engine: openai-speech, url: 'http://{NAME}:9'}}")
    return Settings(
        store=StoreSettings(url=f"sqlite:///{tmp_path / 'patra.db'}"),
        attribution=AttributionSettings(archive=f"http://{NAME}/records"),
        alerts=AlertSettings(
            webhook_url=f"https://{NAME}/",
            webhook_hosts=(NAME,),
            email_to=("ops@example.org",),
            email_from="patra@example.org",
            smtp_host=NAME,
        ),
        studio=StudioSettings(profiles=str(profiles)),
        **more,
    )


def test_names_that_lead_inside_are_refused_until_a_setting_names_the_network(tmp_path: Path) -> None:
    found = refused_targets(targets(settings(tmp_path)))
    places = ["attribution.archive", "alerts.webhook_url", "alerts.smtp_host", "studio.profiles: v"]
    assert [error.place for error in found] == places
    assert {error.code for error in found} == {"config_egress_refused"}
    assert all('egress.networks = ["127.0.0.1"]' in error.advice for error in found)
    allowed = settings(tmp_path, egress=EgressSettings(networks=("127.0.0.0/8",)))
    assert refused_targets(targets(allowed)) == []


def test_an_address_and_localhost_name_themselves_and_a_name_that_is_unknown_is_let_be() -> None:
    for where in ("http://127.0.0.1:9/", "http://localhost:9/", "http://[::1]:9/", "store", "parquet:x", "bus"):
        found = targets(Settings(attribution=AttributionSettings(archive=where)))
        assert refused_targets(found) == [], where

    def unknown(*_: object) -> None:
        raise socket.gaierror

    assert refused_targets(targets(Settings(attribution=AttributionSettings(archive="http://x.test/"))), unknown) == []


def test_a_process_with_such_an_archive_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"attribution\.archive: config_egress_refused"):
        run(settings(tmp_path), web=False, loops=())
    assert not (tmp_path / "patra.db").exists()


def test_the_doctor_says_so(tmp_path: Path) -> None:
    loaded = Loaded(settings=settings(tmp_path), origins={}, file=None)
    broken = [check for check in examine(loaded) if check.name == "egress"]
    assert [check.health for check in broken] == [Health.BROKEN] * 4
    assert "egress.networks" in broken[0].advice
