from itertools import pairwise

import numpy as np
import pytest

from patra.kernel.errors import Permanent
from patra.studio.film.ffmpeg import Interrupted, encode_clip, probe, run
from patra.studio.film.loudness import gain_for, loudness
from patra.studio.film.quality import QUALITIES, Quality
from patra.studio.film.subtitles import ass, plain, srt
from patra.studio.film.timeline import Clip, Cue, captions, timeline_of
from patra.studio.reasons import R
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
    assert "".join(c.text for c in cues).replace(" ", "") == text.replace(" ", "")
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


def test_loudness_of_a_reference_tone():
    # BS.1770: a 997 Hz sine at 0 dBFS in one channel reads -3.01 LKFS
    t = np.arange(22050 * 3) / 22050
    tone = (np.sin(2 * np.pi * 997 * t) * 32767 * 0.1).astype("<i2").tobytes()
    assert loudness([tone], 22050) == pytest.approx(-23.0, abs=0.15)
    assert gain_for(-23.0) == pytest.approx(7.0)


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


def test_silence_is_not_made_loud():
    assert gain_for(loudness([bytes(44100 * 4)], 22050)) == 0.0


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
    assert failed.value.code == R.ENCODER_FAILED
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
    assert refused.value.code == R.MEDIA_UNREADABLE
