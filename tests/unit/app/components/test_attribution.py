"""Retention as the settings say it: what cannot be kept safely stops the start."""

from pathlib import Path
from typing import Any

import pytest

from patra.app.components.attribution import history_of, kept_history
from patra.app.configuration.engine_settings import AttributionSettings, BusSettings
from patra.app.configuration.settings import Settings, StoreSettings
from patra.app.wiring import build
from patra.kernel.errors import ConfigInvalid, Invalid


def refusal(**sections: Any) -> tuple[str, str | None]:
    with (
        pytest.raises(ConfigInvalid) as refused,
        build(Settings(store=StoreSettings(url="sqlite:///:memory:"), **sections)),
    ):
        pass
    return refused.value.code, refused.value.place


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"keep_facts_days": 400}, "config_purge_folder_missing"),
        ({"keep_settled_days": 400}, "config_wrong_value"),
        ({"keep_settled_days": 29, "history_folder": "history"}, "config_wrong_value"),
    ],
)
def test_facts_leave_the_store_only_for_a_place_that_keeps_them(settings: dict[str, Any], code: str) -> None:
    assert refusal(attribution=AttributionSettings(**settings)) == (code, f"attribution.{next(iter(settings))}")


def test_keys_of_events_are_kept_for_thirty_days_at_least() -> None:
    assert refusal(bus=BusSettings(keep_keys_days=29)) == ("config_wrong_value", "bus.keep_keys_days")


def test_history_is_where_the_settings_say(tmp_path: Path) -> None:
    assert history_of(AttributionSettings()) is None
    with pytest.raises(Invalid, match="attribution_history_missing"):
        kept_history(AttributionSettings())
    assert kept_history(AttributionSettings(history_folder=str(tmp_path))).name == str(tmp_path)
