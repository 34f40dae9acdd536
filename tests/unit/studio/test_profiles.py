import pytest

from patra.app.component import Health
from patra.app.configuration.engine_settings import StudioSettings
from patra.app.configuration.settings import Settings, StoreSettings
from patra.app.wiring import build
from patra.kernel.errors import ConfigInvalid
from patra.studio.profiles import Engine, Profile, choose, load_profiles

LOCAL = load_profiles()
SERVER = Profile(
    profile_id="server",
    worker_type="audio",
    engine=Engine.OPENAI_SPEECH,
    url="http://x",
    languages=("en",),
    grade=90,
    cost_micros=5,
)


def chosen(quality="draft", language="en", preferred=(), profiles=None):
    return choose(
        profiles or LOCAL | {"server": SERVER},
        "audio",
        language=language,
        quality=quality,
        seconds=2.0,
        preferred=preferred,
    )


def test_a_draft_is_cheap_and_a_better_film_is_good():
    assert (chosen().profile_id, chosen().fallback_chain) == ("audio-espeak", ("server",))
    assert (chosen("high").profile_id, chosen("high").fallback_chain) == ("server", ("audio-espeak",))


def test_what_the_task_prefers_comes_first():
    assert chosen(preferred=["server"]).profile_id == "server"


def test_a_profile_is_not_asked_for_a_language_it_does_not_have():
    assert chosen("high", "zh").fallback_chain == ()
    assert chosen("high", "zh", ["server"]).profile_id == "audio-espeak"


def test_costs_are_estimated_by_length():
    assert chosen("high").estimated_cost_micros == 10


def test_nobody_for_the_work_is_no_choice():
    assert choose({}, "audio", language="en", quality="draft", seconds=1.0) is None


def test_the_plain_painter_is_the_last_resort_of_a_draft():
    choice = choose(LOCAL, "video", language="en", quality="draft", seconds=1.0)
    assert choice is not None
    assert (choice.profile_id, choice.fallback_chain) == ("video-painter", ("video-still",))


def test_profiles_of_a_file_are_added_and_checked(tmp_path):
    file = tmp_path / "profiles.yaml"
    file.write_text("- {profile_id: v, worker_type: audio, engine: openai-speech, url: 'http://x'}\n")
    assert load_profiles(file)["v"].engine is Engine.OPENAI_SPEECH
    file.write_text("- {profile_id: v, worker_type: audio, engine: openai-speech}\n")
    with pytest.raises(ConfigInvalid):
        load_profiles(file)
    file.write_text("- {profile_id: v, worker_type: audio, colour: red}\n")
    with pytest.raises(ConfigInvalid):
        load_profiles(file)


def test_the_doctor_names_a_key_that_leads_to_nothing(tmp_path, monkeypatch):
    file = tmp_path / "profiles.yaml"
    file.write_text(
        "- {profile_id: v, worker_type: audio, engine: openai-speech, url: 'http://h', api_key: 'env:SPEECH_KEY'}"
    )
    settings = Settings(store=StoreSettings(url="sqlite:///:memory:"), studio=StudioSettings(profiles=str(file)))
    patra = build(settings)

    def found():
        return next(check for check in (one() for one in patra.checks) if check.name == "studio")

    try:
        monkeypatch.delenv("SPEECH_KEY", raising=False)
        assert found().health is Health.BROKEN
        assert "v: api_key: config_secret_missing" in found().found
        monkeypatch.setenv("SPEECH_KEY", "secret")
        assert found().health is Health.OK
    finally:
        patra.close(0)
