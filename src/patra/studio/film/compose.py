"""A timeline with its clips goes in; the film comes out: joined, levelled, captioned, streamed through ffmpeg
(C§2.6).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from patra.studio.film.ffmpeg import Stop, run
from patra.studio.film.loudness import gain_for, loudness
from patra.studio.film.quality import Quality
from patra.studio.film.subtitles import ass, plain, srt
from patra.studio.film.timeline import Cue, Timeline
from patra.studio.paint.lettering import font_file

COMPOSER_VERSION = "composer-2"
PIECE = 1 << 16
NOTHING = "\u200b"  # a space of no width: ffmpeg leaves empty captions out
_LANGUAGES = {"en": "eng", "zh": "chi", "de": "ger", "fr": "fre", "es": "spa", "it": "ita", "ja": "jpn", "ru": "rus"}


def compose(
    timeline: Timeline,
    quality: Quality,
    work: Path,
    *,
    language: str,
    burn: bool,
    tags: Mapping[str, str],
    stop: Stop | None = None,
) -> tuple[Path, Path]:
    """Write the film and its subtitles into a working folder; gives both paths."""
    subtitles = work / "film.srt"
    subtitles.write_text(srt(timeline.cues), "utf-8")
    stream = work / "stream.srt"
    stream.write_text(srt(closed(timeline)), "utf-8")
    joined = work / "clips.txt"
    joined.write_text("".join(f"file '{_quoted(clip.video)}'\n" for clip in timeline.clips), "utf-8")
    film = work / "film.mp4"
    rate = timeline.clips[0].timing.rate
    gain = gain_for(loudness(narration(timeline), rate))
    levelled = f"volume={gain:.2f}dB,alimiter=limit=0.84:level=false,aresample=48000"
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
            *("-map", "0:v:0", "-map", "1:a:0", "-map", "2:s:0", *picture),
            *("-af", levelled, "-c:a", "aac", "-ar", "48000", "-ac", "2", "-b:a", f"{quality.audio_kbit}k"),
            *("-c:s", "mov_text", "-metadata:s:s:0", f"language={code}", "-metadata:s:a:0", f"language={code}"),
            *(word for name, value in sorted(tags.items()) for word in ("-metadata", f"{name}={value}")),
            *("-disposition:s:0", "0" if burn else "default"),
            *("-movflags", "+faststart", "-fflags", "+bitexact", "-flags:a", "+bitexact", "-f", "mp4", str(film)),
        ],
        narration(timeline),
        stop,
    )
    return film, subtitles


def closed(timeline: Timeline) -> tuple[Cue, ...]:
    """The captions of a stream that lasts as long as the picture: the last is followed by one that shows nothing."""
    last = timeline.cues[-1].end if timeline.cues else 0
    rest = (Cue(at=last, end=timeline.duration_ms, text=NOTHING),) if last < timeline.duration_ms else ()
    said = (msgspec.structs.replace(cue, text=plain(cue.text)) for cue in timeline.cues)
    return (*said, *rest)


def narration(timeline: Timeline) -> Iterator[bytes]:
    """The samples of all shots, piece by piece: each shot's sound is as long as its picture."""
    for clip in timeline.clips:
        with Path(clip.audio).open("rb") as file:
            file.seek(44)  # our own WAV: a plain header, then samples
            while piece := file.read(PIECE):
                yield piece


def _quoted(path: str) -> str:
    return path.replace("'", "'\\''")


def _filter_quoted(path: Path) -> str:
    return str(path).replace("\\", "/").replace(":", "\\:").replace("'", "\\'")
