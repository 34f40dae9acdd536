import io
import wave

import pytest

from patra.kernel.errors import Permanent
from patra.studio.vocabulary.reasons import Reason
from patra.studio.voice.espeak import Mark, Voice, speak
from patra.studio.voice.narration import (
    HEAD_MS,
    OPEN_MS,
    VARIANTS,
    in_one,
    join_speeches,
    pause_ms,
    voice_for,
    voice_of,
)
from patra.studio.voice.visemes import SHAPES, mouth_of, shape_of


def narrate(sentences, language, mood, fps, **more):
    voice = voice_for(language, mood)
    return join_speeches([(text, speak(text, voice)) for text in sentences], fps, **more)


def samples_of(data):
    with wave.open(io.BytesIO(data)) as file:
        return file.readframes(file.getnframes()), file.getframerate()


@pytest.mark.parametrize(("text", "voice"), [("The sea was calm.", "en-gb-x-rp"), ("江面上有雾。", "cmn")])
def test_speech_has_words_and_phonemes_in_order(text, voice):
    speech = speak(text, Voice(name=voice))
    for marks in (speech.words, speech.phonemes):
        assert marks
        assert [m.at for m in marks] == sorted(m.at for m in marks)
        assert all(m.at <= m.end <= speech.milliseconds for m in marks)
    assert speech == speak(text, Voice(name=voice))


def test_an_unknown_voice_is_refused_by_name():
    with pytest.raises(Permanent) as refused:
        speak("Hello.", Voice(name="nobody"))
    assert refused.value.code == Reason.VOICE_UNKNOWN


def test_a_shots_sound_is_as_long_as_its_frames_to_the_sample():
    for fps in (10, 20, 24, 30):
        sound, timing = narrate(["One came.", "Two went away again."], "en", "calm", fps)
        samples, rate = samples_of(sound)
        assert len(samples) // 2 == round(timing.frames * rate / fps)


def test_sentences_follow_each_other_within_the_shot():
    _, timing = narrate(["One came.", "Two went."], "en", "sad", 20)
    first, second = timing.sentences
    assert HEAD_MS <= first.at < first.end < second.at < second.end <= timing.duration_ms


def test_the_opening_leaves_time_for_the_title():
    _, plain = narrate(["One came."], "en", "calm", 20)
    _, opening = narrate(["One came."], "en", "calm", 20, opens=True)
    assert opening.sentences[0].at - plain.sentences[0].at == OPEN_MS


@pytest.mark.parametrize(
    ("phoneme", "shape"), [("m", "closed"), ("f", "teeth"), ("ˈɑː", "open"), ("uː", "pucker"), ("", "rest")]
)
def test_a_phoneme_has_its_mouth_shape(phoneme, shape):
    assert shape_of(phoneme) == shape


def test_the_mouth_shows_what_is_heard_longest_in_each_frame():
    marks = [Mark(0, 30, "m"), Mark(30, 100, "ɑː"), Mark(100, 200, "f")]
    mouth = mouth_of(marks, 3, 10)
    assert [SHAPES[k] for k in mouth.shapes] == ["open", "teeth", "rest"]


def test_the_mouth_moves_while_it_speaks_and_rests_when_it_does_not():
    _, timing = narrate(["The lighthouse stood above the bay."], "en", "calm", 20, opens=True)
    mouth = mouth_of(timing.phonemes, timing.frames, 20)
    quiet = mouth.shapes[: OPEN_MS * 20 // 1000]
    assert set(quiet) == {SHAPES.index("rest")}
    assert len(set(mouth.shapes)) > 4


def test_each_kind_of_person_has_a_voice_of_its_own_and_keeps_it():
    voices = {kind: voice_of("en", "calm", kind, 0) for kind in VARIANTS}
    assert len({(v.name, v.pitch) for v in voices.values()} | {(voice_for("en", "calm").name, 42)}) == len(VARIANTS) + 1
    assert voice_of("en", "calm", "woman", 0) == voices["woman"] != voice_of("en", "calm", "woman", 1)
    assert voice_of("en", "calm", "", 0) == voice_for("en", "calm")


def test_a_sentence_of_two_voices_says_who_speaks_when():
    parts = [
        ("", speak("She said:", voice_for("en", "calm"))),
        ("Anna", speak("Come in!", voice_of("en", "calm", "woman", 0))),
    ]
    whole, spoken = in_one(parts)
    assert [mark.text for mark in spoken] == ["Anna"]
    assert 0 < spoken[0].at < spoken[0].end <= whole.milliseconds + 1
    _, timing = join_speeches([("She said: Come in!", whole)], 20, spoken=[spoken])
    assert timing.spoken[0].at == timing.sentences[0].at + spoken[0].at
    assert [word.text for word in whole.words][:3] == ["She", "said", "Come"]


def test_pauses_follow_the_mark_that_ends_a_sentence():
    assert pause_ms("One,") < pause_ms("One.") < pause_ms("One?”") < pause_ms("One…”")
