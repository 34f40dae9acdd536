from itertools import pairwise

import numpy as np
import pytest

from patra.kernel.errors import Permanent
from patra.studio.film.ffmpeg import Interrupted, encode_clip, probe, run
from patra.studio.film.loudness import TARGET_LUFS, gain_to_target, level, loudness
from patra.studio.film.quality import FORMATS, QUALITIES, Quality, shape_quality
from patra.studio.film.subtitles import ass, plain, srt, vtt
from patra.studio.film.timeline import Clip, Cue, captions, timeline_of
from patra.studio.vocabulary.reasons import Reason
from patra.studio.voice.espeak import Mark
from patra.studio.voice.narration import Said, Timing

SMALL = Quality(name="draft", width=64, height=36, fps=10, preset="ultrafast", crf=30, smooth=1.0, audio_kbit=64)


def timing(frames, *sentences):
    return Timing(rate=22050, frames=frames, fps=10, duration_ms=frames * 100, sentences=sentences, phonemes=())


def said(text, at, end):
    return Said(text=text, at=at, end=end, words=())


def test_time_is_counted_in_frames_so_that_nothing_drifts():
    clips = [Clip(shot_id=f"s{k}", video="", audio="", timing=timing(33, said("x", 100, 900))) for k in range(7)]
    timeline = timeline_of(clips, "en")
    assert timeline.starts == tuple(k * 3300 for k in range(7))
    assert timeline.duration_ms == 7 * 3300
    assert [cue.at for cue in timeline.cues] == [k * 3300 + 100 for k in range(7)]


def test_a_long_sentence_becomes_captions_cut_when_their_words_are_heard():
    words = tuple(Mark(k * 100, k * 100 + 90, w) for k, w in enumerate(["one", "two", "three", "four", "five"]))
    text = "one two three " + "x" * 40 + " four five " + "y" * 40
    cues = captions(Said(text=text, at=0, end=2000, words=words), "en")
    assert "".join("".join(c.text for c in cues).split()) == text.replace(" ", "")
    assert all(a.end == b.at for a, b in pairwise(cues))
    assert (cues[0].at, cues[-1].end) == (0, 2000)


def test_subtitles_are_written_in_both_forms():
    cues = [Cue(at=1500, end=3_723_004, text="Hello {world}")]
    assert srt(cues) == "1\n00:00:01,500 --> 01:02:03,004\nHello {world}\n\n"
    assert "Dialogue: 0,0:00:01.50,1:02:03.00,film,,0,0,0,,Hello （world）" in ass(cues, 854, 480)


def test_no_reader_of_captions_takes_text_for_markup(tmp_path):
    text = "He said <this>, {that} and C:\\Nine."
    (tmp_path / "a.srt").write_text(srt([Cue(at=0, end=900, text=plain(text))]), "utf-8")
    run(["-i", str(tmp_path / "a.srt"), "-c:s", "mov_text", str(tmp_path / "a.mp4")])
    run(["-i", str(tmp_path / "a.mp4"), str(tmp_path / "b.srt")])
    assert text in (tmp_path / "b.srt").read_text("utf-8").replace("\u200b", "")


def _tone(amplitude, seconds=3.0):
    t = np.arange(int(22050 * seconds)) / 22050
    return (np.sin(2 * np.pi * 997 * t) * 32767 * amplitude).astype("<i2").tobytes()


def test_loudness_of_a_reference_tone():
    # BS.1770: a 997 Hz sine at 0 dBFS in one channel reads -3.01 LKFS
    assert loudness([_tone(0.1)], 22050) == pytest.approx(-23.0, abs=0.1)
    assert gain_to_target(lambda: [_tone(0.1)], 22050) == pytest.approx(7.0, abs=0.1)


def test_sound_with_high_peaks_is_as_loud_as_the_target_behind_the_limiter():
    # a quiet tone with loud bursts: the limiter cuts them, so that the plain difference in loudness falls short by 1 LU
    sound = b"".join(_tone(0.06, 0.9) + _tone(0.9, 0.03) for _ in range(4))
    plain_gain = TARGET_LUFS - loudness([sound], 22050)
    assert loudness([sound], 22050, level(plain_gain)) < TARGET_LUFS - 0.5
    gain = gain_to_target(lambda: [sound], 22050)
    assert loudness([sound], 22050, level(gain)) == pytest.approx(TARGET_LUFS, abs=0.5)
    assert gain_to_target(lambda: [sound], 22050) == gain  # the same film each time it is made


def test_measuring_stops_when_it_is_told():
    with pytest.raises(Interrupted):
        gain_to_target(lambda: (bytes(1 << 16) for _ in range(10**9)), 22050, stop=lambda: True)


def test_each_quality_is_better_than_the_one_before():
    draft, standard, high = (QUALITIES[name] for name in ("draft", "standard", "high"))
    for less, more in ((draft, standard), (standard, high)):
        assert (less.width, less.height, less.fps, less.audio_kbit) < (
            more.width,
            more.height,
            more.fps,
            more.audio_kbit,
        )
        assert less.height < more.height
        assert less.fps < more.fps
        assert less.crf > more.crf  # a smaller factor keeps more of the picture
        assert less.smooth <= more.smooth
    assert all(q.width % 2 == q.height % 2 == 0 for q in QUALITIES.values())  # as 4:2:0 needs


@pytest.mark.parametrize("pieces", [[], [bytes(2)], [bytes(44100 * 4)]], ids=["empty", "one sample", "silence"])
def test_silence_is_not_made_loud(pieces):
    assert gain_to_target(lambda: pieces, 22050) == 0.0


def test_a_clip_has_exactly_its_frames_and_is_the_same_each_time(tmp_path):
    frames = [bytes([k * 9 % 256]) * (64 * 36 * 3) for k in range(25)]
    for name in ("a.mp4", "b.mp4"):
        encode_clip(iter(frames), SMALL, tmp_path / name)
    found = probe(tmp_path / "a.mp4")
    assert (found.duration_ms, found.width, found.height, found.streams) == (2500, 64, 36, ("Video",))
    assert (tmp_path / "a.mp4").read_bytes() == (tmp_path / "b.mp4").read_bytes()


def test_ffmpegs_last_words_are_the_reason(tmp_path):
    with pytest.raises(Permanent) as failed:
        run(["-i", str(tmp_path / "nothing.mp4"), str(tmp_path / "out.mp4")])
    assert failed.value.code == Reason.ENCODER_FAILED
    assert "nothing.mp4" in failed.value.detail


def test_encoding_stops_when_it_is_told(tmp_path):
    with pytest.raises(Interrupted):
        encode_clip((bytes(64 * 36 * 3) for _ in range(10**9)), SMALL, tmp_path / "a.mp4", stop=lambda: True)


def test_half_a_file_is_no_media(tmp_path):
    encode_clip(iter([bytes(64 * 36 * 3)] * 20), SMALL, tmp_path / "a.mp4")
    whole = (tmp_path / "a.mp4").read_bytes()
    (tmp_path / "half.mp4").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(Permanent) as refused:
        probe(tmp_path / "half.mp4")
    assert refused.value.code == Reason.MEDIA_UNREADABLE


@pytest.mark.parametrize(
    ("text", "language", "most"),
    [
        ("The fishing boats had come home early, and their masts drew thin lines against the pale sky.", "en", 42),
        ("他弯下腰，捞起一张湿透的纸，上面的字已经模糊，只剩下一朵小小的桃花。", "zh", 16),
        ("x" * 100, "en", 42),
        ("Short.", "en", 42),
        ("Two  spaces   and a very long line that has to be broken somewhere in the middle  ", "en", 42),
    ],
)
def test_captions_have_two_short_lines_at_most_and_none_is_empty(text, language, most):
    cues = captions(said(text, 0, 4000), language)
    lines = [line for cue in cues for line in cue.text.split("\n")]
    assert all(0 < len(line) <= most and line == line.strip() for line in lines)
    assert all(1 <= len(cue.text.split("\n")) <= 2 for cue in cues)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert (cues[0].at, cues[-1].end) == (0, 4000)


def test_web_subtitles_escape_what_is_markup():
    assert vtt([Cue(at=1500, end=2000, text="a < b & c")]) == (
        "WEBVTT\n\n00:00:01.500 --> 00:00:02.000\na &lt; b &amp; c\n\n"
    )


def test_each_format_has_even_sides_of_its_shape():
    for quality in QUALITIES.values():
        sizes = {form: (shape_quality(quality, form).width, shape_quality(quality, form).height) for form in FORMATS}
        assert sizes["16:9"] == (quality.width, quality.height)
        assert sizes["9:16"] == (quality.height, quality.width)
        assert sizes["1:1"] == (quality.height, quality.height)
