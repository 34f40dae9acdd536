"""Captions break between words, and do not repeat what a card letters."""

from patra.studio.film.subtitles import ass, srt
from patra.studio.film.timeline import Clip, captions, lettering_of, timeline_of
from patra.studio.script.cast.segments import tagged_words
from patra.studio.script.facts import Card
from patra.studio.script.shots import Picture
from patra.studio.voice.narration import Said, Timing

TEXT = "The ferry sailed again on Sunday."


def clip(lettering: str) -> Clip:
    said = Said(at=0, end=2000, text=TEXT, words=())
    timing = Timing(fps=25, frames=50, rate=16000, duration_ms=2000, sentences=(said,), phonemes=())
    return Clip(shot_id="s", video="", audio="", timing=timing, lettering=lettering)


def test_burnt_captions_leave_out_what_a_card_letters() -> None:
    cues = timeline_of([clip(f"“{TEXT}”"), clip("")], "en").cues
    assert [cue.lettered for cue in cues] == [True, False]
    assert ass(cues, 1280, 720).count("Dialogue") == 1
    assert srt(cues).count(TEXT) == 2


def test_only_a_card_letters() -> None:
    picture = Picture(
        place="", time="day", weather="clear", mood="calm", card=Card(kind="number", title="9", items=("x",))
    )
    assert lettering_of(picture) == ""
    assert (
        lettering_of(Picture(place="", time="day", weather="clear", mood="calm", framing="card", card=picture.card))
        == "9 x"
    )


def test_a_chinese_caption_breaks_between_words() -> None:
    text = "从下个月起图书馆将每天开放到晚上九点并增加两条公共汽车线路方便市民前来看书"
    lines = [line for cue in captions(Said(at=0, end=9000, text=text, words=()), "zh") for line in cue.text.split("\n")]
    cuts = {at for at, _, _ in tagged_words(text)}
    assert len(lines) > 1
    at = 0
    for line in lines[:-1]:
        at += len(line)
        assert at in cuts
