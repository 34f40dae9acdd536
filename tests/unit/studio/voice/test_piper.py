"""A neural voice of this machine speaks where its program and files are there, and is passed over where they are not."""

from pathlib import Path

import pytest

from patra.kernel.errors import Permanent
from patra.studio.film.ffmpeg import decode_samples
from patra.studio.profiles import Engine, Profile, choose, load_profiles
from patra.studio.vocabulary.reasons import Reason
from patra.studio.voice.piper import PiperVoice, speak_to, trouble_with
from tests.support.piper_stand_in import install


def chosen(profiles: dict[str, Profile], quality: str = "high", preferred: tuple[str, ...] = ()) -> str:
    found = choose(profiles, "audio", language="en", quality=quality, seconds=1.0, preferred=preferred)
    assert found is not None
    return found.profile_id


def test_it_says_a_text_into_a_file(tmp_path: Path) -> None:
    program, model, log = install(tmp_path / "voices")
    voice = PiperVoice(model=str(model), program=str(program), speaker=3)
    assert speak_to(tmp_path / "a.wav", "The sea\nwas calm.", voice)
    assert log.read_text() == f"{(str(model), '3', 'The sea was calm.')!r}\n"
    assert len(decode_samples(tmp_path / "a.wav", 8000)) == pytest.approx(2 * 8000 * 17 / 20, rel=0.02)


def test_each_missing_or_wrong_file_is_named(tmp_path: Path) -> None:
    program, model, _ = install(tmp_path)
    voice = PiperVoice(model=str(model), program=str(program))
    assert trouble_with(voice) == ""
    assert (
        trouble_with(PiperVoice(model=str(model), program=str(tmp_path / "none"))) == f"no program {tmp_path / 'none'}"
    )
    assert trouble_with(PiperVoice(model=str(tmp_path / "b.onnx"), program=str(program))).startswith("no file")
    config = Path(f"{model}.json")
    for text, words in (
        ("{", "is no configuration"),
        ("{}", "is no configuration"),
        ('{"audio":{"sample_rate":0}}', "rate"),
    ):
        config.write_text(text)
        assert words in trouble_with(voice)
    config.unlink()
    assert trouble_with(voice) == f"no file {config}"
    with pytest.raises(Permanent) as refused:
        speak_to(tmp_path / "a.wav", "Yes.", voice)
    assert refused.value.code == Reason.VOICE_UNKNOWN


def test_a_program_that_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    program, model, _ = install(tmp_path, fails=True)
    with pytest.raises(Permanent) as refused:
        speak_to(tmp_path / "a.wav", "Yes.", PiperVoice(model=str(model), program=str(program)))
    assert (refused.value.code, "exit code 3 cannot load the model" in refused.value.detail) == (
        Reason.SPEECH_FAILED,
        True,
    )


def test_it_stops_when_it_is_told(tmp_path: Path) -> None:
    program, model, _ = install(tmp_path)
    program.write_text("#!/bin/sh\nexec sleep 100\n")
    assert not speak_to(tmp_path / "a.wav", "Yes.", PiperVoice(model=str(model), program=str(program)), lambda: True)


def test_its_profile_is_chosen_for_better_films_while_its_files_are_there(tmp_path: Path) -> None:
    program, model, _ = install(tmp_path)
    file = tmp_path / "profiles.yaml"
    file.write_text(
        f"- {{profile_id: anna, worker_type: audio, engine: piper, model: {model}, grade: 80, languages: [en], "
        f"options: {{program: {program}}}}}\n"
    )
    profiles = load_profiles(file)
    assert profiles["anna"].engine is Engine.PIPER
    assert chosen(profiles) == "anna"
    assert chosen(profiles, "draft", ("anna",)) == "anna"
    model.unlink()
    assert chosen(profiles) == chosen(profiles, "draft", ("anna",)) == "audio-espeak"
