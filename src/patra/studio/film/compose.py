"""Turns a timeline with its clips into the film: joined, levelled, captioned, streamed through ffmpeg
(C§2.6).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from patra.kernel.errors import Permanent
from patra.studio.film.ambience import mix_samples
from patra.studio.film.chapters import ChapterMark, ffmetadata
from patra.studio.film.ffmpeg import Stop, lengths, run
from patra.studio.film.loudness import gain_to_target, level
from patra.studio.film.quality import Quality
from patra.studio.film.subtitles import ass, plain, srt, vtt
from patra.studio.film.timeline import Timeline
from patra.studio.paint.lettering import font_file
from patra.studio.vocabulary.reasons import Reason

COMPOSER_VERSION = "composer-5"
TOLERANCE_MS = 100
_LANGUAGES = {"en": "eng", "zh": "chi", "de": "ger", "fr": "fre", "es": "spa", "it": "ita", "ja": "jpn", "ru": "rus"}


def compose(
    timeline: Timeline,
    quality: Quality,
    work: Path,
    *,
    language: str,
    burn: bool,
    tags: Mapping[str, str],
    chapters: Sequence[ChapterMark] = (),
    stop: Stop | None = None,
) -> tuple[Path, Path, Path]:
    """Write the film and its subtitles (SRT, WebVTT) into a working folder; gives the three paths."""
    subtitles = work / "film.srt"
    subtitles.write_text(srt(timeline.cues), "utf-8")
    web_subtitles = work / "film.vtt"
    web_subtitles.write_text(vtt(timeline.cues), "utf-8")
    stream = work / "stream.srt"
    stream.write_text(srt([msgspec.structs.replace(cue, text=plain(cue.text)) for cue in timeline.cues]), "utf-8")
    joined = work / "clips.txt"
    joined.write_text("".join(f"file '{_quote_path(clip.video)}'\n" for clip in timeline.clips), "utf-8")
    marks = work / "chapters.txt"
    marks.write_text(ffmetadata(chapters), "utf-8")
    film = work / "film.mp4"
    rate = timeline.clips[0].timing.rate
    sound = f"{level(gain_to_target(lambda: mix_samples(timeline), rate, stop))},aresample=48000"
    picture = ["-c:v", "copy"]
    if burn:
        (work / "film.ass").write_text(ass(timeline.cues, quality.width, quality.height), "utf-8")
        where = f"ass='{_filter_quoted(work / 'film.ass')}':fontsdir='{_filter_quoted(font_file().parent)}'"
        picture = [
            "-vf",
            where,
            "-c:v",
            "libx264",
            "-preset",
            quality.preset,
            "-crf",
            str(quality.crf),
            "-pix_fmt",
            "yuv420p",
        ]
    code = _LANGUAGES.get(language, "und")
    run(
        [
            *("-f", "concat", "-safe", "0", "-i", str(joined)),
            *("-f", "s16le", "-ar", str(rate), "-ac", "1", "-i", "pipe:0"),
            *("-i", str(stream)),
            *("-f", "ffmetadata", "-i", str(marks), "-map_chapters", "3"),
            *("-map", "0:v:0", "-map", "1:a:0", "-map", "2:s:0", *picture),
            *("-af", sound, "-c:a", "aac", "-ar", "48000", "-ac", "2", "-b:a", f"{quality.audio_kbit}k"),
            *("-c:s", "mov_text", "-metadata:s:s:0", f"language={code}", "-metadata:s:a:0", f"language={code}"),
            *(word for name, value in sorted(tags.items()) for word in ("-metadata", f"{name}={value}")),
            *("-disposition:s:0", "0" if burn else "default"),
            *("-movflags", "+faststart", "-fflags", "+bitexact", "-flags:a", "+bitexact", "-f", "mp4", str(film)),
        ],
        mix_samples(timeline),
        stop,
    )
    return film, subtitles, web_subtitles


def _quote_path(path: str) -> str:
    return path.replace("'", "'\\''")


def _filter_quoted(path: Path) -> str:
    return str(path).replace("\\", "/").replace(":", "\\:").replace("'", "\\'")


def checked_lengths(film: Path, expected_ms: int, last_cue_ms: int) -> dict[str, int]:
    """How long each stream of the film is. Raises when one is missing, or ends before or after it should.

    Picture and sound end together; subtitles end with the last one that is shown.
    """
    found = lengths(film)
    whole = found.keys() == {"video", "audio", "subtitle"}
    ends = {"video": expected_ms, "audio": expected_ms, "subtitle": last_cue_ms}
    if not whole or any(abs(ms - ends[kind]) > TOLERANCE_MS for kind, ms in found.items()):
        raise Permanent(Reason.COMPOSE_FAILED, f"{found} ms instead of {expected_ms}")
    return found
