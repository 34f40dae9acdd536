"""Turns raw frames, samples and files into clips and films. The one place that runs ffmpeg (B6).

Output is bit-exact: the same input gives the same file, so work that is done again is found by its hash. ffmpeg's
messages go to a file, not to a pipe that could fill up and stop it.
"""

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from patra.kernel.errors import ConfigInvalid, Permanent
from patra.studio.film.quality import Quality
from patra.studio.vocabulary.reasons import Reason

Stop = Callable[[], bool]


class Interrupted(Exception):  # noqa: N818  no error: it was requested
    """The work was asked to stop."""


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What a media file is, as ffmpeg reads it."""

    duration_ms: int
    streams: tuple[str, ...]  # Video, Audio, Subtitle
    width: int = 0
    height: int = 0
    fps: float = 0.0
    chapters: tuple[tuple[int, str], ...] = ()  # when each begins, in milliseconds, and its title


@lru_cache(maxsize=1)
def executable() -> str:
    try:
        import imageio_ffmpeg  # noqa: PLC0415  an extra  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        raise ConfigInvalid(
            Reason.EXTRA_MISSING, "films need imageio-ffmpeg", place="studio", advice="pip install 'patra[studio]'"
        ) from error
    return imageio_ffmpeg.get_ffmpeg_exe()


def run(
    arguments: Sequence[str],
    feed: Iterable[bytes] | None = None,
    stop: Stop | None = None,
    *,
    log_level: str = "error",
) -> str:
    """Run ffmpeg to its end, feeding its standard input. Gives its messages; raises with the last when it fails."""
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(  # noqa: S603  our own ffmpeg, arguments of our own
            [
                executable(),
                "-hide_banner",
                "-nostdin" if feed is None else "-loglevel",
                *([] if feed is None else [log_level]),
                "-y",
                *arguments,
            ],
            stdin=subprocess.DEVNULL if feed is None else subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=words,
        )
        try:
            if feed is not None:
                _feed(process, feed, stop)
            while True:
                try:
                    code = process.wait(timeout=0.2)
                    break
                except subprocess.TimeoutExpired:
                    if stop is not None and stop():
                        raise Interrupted from None
        except BaseException:
            process.kill()
            process.wait()
            raise
        words.seek(0)
        said = words.read().decode("utf-8", "replace").strip()
        if code != 0:
            raise Permanent(Reason.ENCODER_FAILED, " / ".join(said.splitlines()[-4:])[-800:] or f"exit code {code}")
        return said


def _feed(process: "subprocess.Popen[bytes]", feed: Iterable[bytes], stop: Stop | None) -> None:
    pipe = process.stdin
    assert pipe is not None  # noqa: S101  it was asked for
    try:
        for number, piece in enumerate(feed):
            if stop is not None and number % 8 == 0 and stop():
                raise Interrupted
            pipe.write(piece)
        pipe.close()
    except BrokenPipeError:
        pass  # ffmpeg ended early; its exit code and last words say why


def encode_clip(
    frames: Iterable[bytes], quality: Quality, out: Path, stop: Stop | None = None, threads: int = 1
) -> None:
    """Raw RGB frames as an H.264 clip that can be joined to others without encoding again."""
    size = f"{quality.width}x{quality.height}"
    run(
        [
            *("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", str(quality.fps), "-i", "pipe:0"),
            *("-c:v", "libx264", "-preset", quality.preset, "-crf", str(quality.crf), "-tune", "animation"),
            *("-pix_fmt", "yuv420p", "-bf", "0", "-g", str(quality.fps * 4), "-threads", str(threads)),
            *("-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709"),
            *("-vf", "scale=out_color_matrix=bt709:out_range=tv"),
            *(
                "-video_track_timescale",
                "90000",
                "-fflags",
                "+bitexact",
                "-flags:v",
                "+bitexact",
                "-f",
                "mp4",
                str(out),
            ),
        ],
        frames,
        stop,
    )


def decode_frames(source: Path, quality: Quality, frames: int) -> Iterator[bytes]:
    """Any video or picture as raw RGB frames of our size and rate: scaled to fill, cut or held to length."""
    size = f"{quality.width}:{quality.height}"
    fill = f"scale={size}:force_original_aspect_ratio=increase,crop={size}"
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(  # noqa: S603
            [
                executable(),
                "-hide_banner",
                "-loglevel",
                "error",
                "-nostdin",
                "-i",
                str(source),
                "-vf",
                f"{fill},fps={quality.fps}",
                "-f",
                "rawvideo",
                "-pix_fmt",
                "rgb24",
                "pipe:1",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=words,
        )
        assert process.stdout is not None  # noqa: S101  it was asked for
        size = quality.width * quality.height * 3
        last = b""
        try:
            for _ in range(frames):
                piece = process.stdout.read(size)
                if len(piece) == size:
                    last = piece
                elif not last:
                    raise Permanent(Reason.MEDIA_UNREADABLE, f"{source.name} holds no picture")
                yield last
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def decode_samples(source: Path, rate: int) -> bytes:
    """Any sound as 16-bit mono samples; for the few seconds of one sentence."""
    done = subprocess.run(  # noqa: S603
        [
            executable(),
            "-hide_banner",
            "-loglevel",
            "error",
            "-nostdin",
            "-i",
            str(source),
            "-ac",
            "1",
            "-ar",
            str(rate),
            "-f",
            "s16le",
            "pipe:1",
        ],
        capture_output=True,
        check=False,
    )
    if done.returncode != 0 or not done.stdout:
        raise Permanent(Reason.MEDIA_UNREADABLE, f"{source.name} holds no sound")
    return done.stdout


_DURATION = re.compile(r"Duration: (\d+):(\d+):(\d+)\.(\d+)")
_CHAPTER = re.compile(r"Chapter #\d+:\d+: start (\d+\.\d+), end [\d.]+\s+Metadata:\s+title +: (.*)")
_STREAM = re.compile(r"Stream #\d+:\d+.*?: (Video|Audio|Subtitle): (.*)")


def probe(source: Path) -> Probe:
    """What a file holds. Raises when it is no media file that ends where it should."""
    words = [executable(), "-hide_banner", "-nostdin", "-i", str(source)]
    done = subprocess.run(words, capture_output=True, check=False)  # noqa: S603
    said = done.stderr.decode("utf-8", "replace")
    found = _DURATION.search(said)
    if found is None:
        raise Permanent(Reason.MEDIA_UNREADABLE, f"{source.name}: {said.strip().splitlines()[-1:]}")
    hours, minutes, seconds, hundredths = map(int, found.groups())
    streams = _STREAM.findall(said)
    video = next((rest for kind, rest in streams if kind == "Video"), "")
    size = re.search(r"(\d{2,5})x(\d{2,5})", video)
    rate = re.search(r"([\d.]+) fps", video)
    return Probe(
        duration_ms=((hours * 60 + minutes) * 60 + seconds) * 1000 + hundredths * 10,
        streams=tuple(kind for kind, _ in streams),
        width=int(size[1]) if size else 0,
        height=int(size[2]) if size else 0,
        fps=float(rate[1]) if rate else 0.0,
        chapters=tuple((round(1000 * float(at)), title.strip()) for at, title in _CHAPTER.findall(said)),
    )


_KIND = re.compile(r"#media_type (\d+): (\w+)")
_BASE = re.compile(r"#tb (\d+): (\d+)/(\d+)")


def lengths(source: Path) -> dict[str, int]:
    """When each stream of a file ends, in milliseconds, read packet by packet: `video`, `audio`, `subtitle`."""
    kinds: dict[str, str] = {}
    bases: dict[str, float] = {}
    ends: dict[str, int] = {}
    words = [executable(), "-hide_banner", "-loglevel", "error", "-nostdin", "-i", str(source)]
    process = subprocess.Popen(  # noqa: S603
        [*words, "-map", "0", "-c", "copy", "-f", "framecrc", "pipe:1"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None  # noqa: S101  it was asked for
    with process.stdout as lines:
        for line in lines:
            if kind := _KIND.match(line):
                kinds[kind[1]] = kind[2]
            elif base := _BASE.match(line):
                bases[base[1]] = 1000 * int(base[2]) / int(base[3])
            elif line[0] != "#":
                stream, _, at, lasts, *_ = (part.strip() for part in line.split(","))
                ends[stream] = max(ends.get(stream, 0), int(at) + int(lasts))
    if process.wait() != 0 or not ends:
        raise Permanent(Reason.MEDIA_UNREADABLE, f"{source.name} cannot be read to its end")
    media = {stream: end for stream, end in ends.items() if kinds[stream] != "data"}  # chapters are data
    return {kinds[stream]: round(end * bases[stream]) for stream, end in media.items()}
