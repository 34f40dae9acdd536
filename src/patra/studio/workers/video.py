"""Turns staging, timing and mouth shapes into the shot's clip, painted here or made from a server's picture
(B6).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from PIL import Image, ImageOps

from patra.kernel.errors import Permanent
from patra.studio.film.ffmpeg import decode_frames, encode_clip, probe
from patra.studio.paint.camera import Camera
from patra.studio.paint.frames import ShotFrames, finish, render
from patra.studio.paint.narrator import NARRATOR_VERSION, Narrator
from patra.studio.paint.palette import palette_for
from patra.studio.paint.scene import PAINTER_VERSION, ROOM, Layers
from patra.studio.profiles import Engine
from patra.studio.script.plan import in_words, style_of
from patra.studio.script.shots import Picture
from patra.studio.storage.artifacts import ArtifactStore
from patra.studio.vocabulary.reasons import Reason
from patra.studio.voice.narration import Timing
from patra.studio.voice.visemes import Mouth, mouth_of
from patra.studio.workers.job_request import File, JobRequest, JobResult, Stop, read
from patra.studio.workers.model_client import post_for_file


class Video:
    version = f"video-2+{PAINTER_VERSION}+{NARRATOR_VERSION}"

    def execute(self, order: JobRequest, folder: Path, artifacts: ArtifactStore, stop: Stop) -> JobResult:
        prompt, quality = order.prompt, order.quality
        timing = read(artifacts, order.artifact_of("timing"), Timing)
        staging = order.input("text")
        picture = read(artifacts, staging, Picture) if staging else msgspec.convert(prompt["picture"], Picture)
        shapes = order.input("mouth_shapes")
        mouth = read(artifacts, shapes, Mouth) if shapes else mouth_of(timing.phonemes, timing.frames, timing.fps)
        shot = ShotFrames(
            picture=picture,
            before=msgspec.convert(prompt["before"], Picture) if prompt["before"] else None,
            cut=prompt["cut"],
            leaves=prompt["leaves"],
            title=prompt["title"],
            language=prompt["language"],
            frames=timing.frames,
            fps=quality.fps,
            width=quality.width,
            height=quality.height,
            spoken=timing.spoken,
            narrator=shapes is not None,
            still=order.profile.engine is Engine.LOCAL_STILL,
            smooth=quality.smooth,
        )
        files: list[File] = []
        if order.profile.engine is Engine.HTTP_VIDEO:
            body = request_body(order, shot)
            request = folder / "request.json"
            request.write_bytes(msgspec.json.encode(body))
            files.append(File(path=request, kind="request", media_type="application/json"))
            frames = _serve_frames(order, shot, body, mouth, folder, stop)
        else:
            frames = render(shot, mouth)
        clip = folder / "clip.mp4"
        encode_clip(frames, quality, clip, stop)
        found = probe(clip)
        if abs(found.duration_ms - timing.duration_ms) > 1000 / quality.fps + 10:
            raise Permanent(Reason.MEDIA_UNREADABLE, f"the clip has {found.duration_ms} ms, not {timing.duration_ms}")
        fields = {"duration_ms": timing.duration_ms, "width": quality.width, "height": quality.height}
        return JobResult(
            files=(File(path=clip, kind="video", media_type="video/mp4", fields=fields), *files),
            metrics={"frames": timing.frames},
        )


def request_body(order: JobRequest, shot: ShotFrames) -> dict[str, Any]:
    """What a picture server is sent: the text, the staging (a chat model's, where one was asked) and the style.

    It is kept beside the clip and named in the film's manifest.
    """
    return {
        "model": order.profile.model,
        "prompt": in_words(shot.picture),
        "text": order.prompt.get("text", ""),
        "staging": msgspec.to_builtins(shot.picture),
        "style": order.profile.options.get("style") or style_of(shot.picture),
        "width": shot.width,
        "height": shot.height,
        "fps": shot.fps,
        "seconds": shot.frames / shot.fps,
        "seed": shot.picture.seed,
    }


def _serve_frames(
    order: JobRequest, shot: ShotFrames, body: dict[str, Any], mouth: Mouth, folder: Path, stop: Stop
) -> Iterator[bytes]:
    """A server's picture with our camera, or a server's video; narrator, title and dips are laid over it as ever."""
    source = folder / "served"
    media = post_for_file(order.profile, str(order.profile.options.get("path", "/generate")), body, source, stop)
    narrator = Narrator(mouth, shot.width, shot.height) if shot.narrator else None
    if media.startswith("image/"):
        camera = Camera(layers_of_picture(source, shot), shot.picture.camera, shot.width, shot.height)
        seen: Iterator[Image.Image] = (camera.at(n / max(1, shot.frames - 1)) for n in range(shot.frames))
    elif media.startswith("video/"):
        raw = decode_frames(source, order.quality, shot.frames)
        seen = (Image.frombytes("RGB", (shot.width, shot.height), piece) for piece in raw)
    else:
        raise Permanent(
            Reason.SERVER_ANSWER_INVALID, f"{order.profile.profile_id} answered {media or 'nothing'}, no picture"
        )
    for number, frame in enumerate(seen):
        yield finish(frame, shot, number, None, narrator, None)


def layers_of_picture(source: Path, shot: ShotFrames) -> Layers:
    """A picture of a model server as the scene of a shot."""
    try:
        image = Image.open(source).convert("RGB")
    except (OSError, Image.DecompressionBombError) as error:
        raise Permanent(Reason.SERVER_ANSWER_INVALID, f"the picture cannot be read: {error}") from error
    width, height = round(shot.width * ROOM), round(shot.height * ROOM)
    back = ImageOps.fit(
        image, (width, height), Image.Resampling.LANCZOS
    )  # cut first: scaled up, a strip fills the memory
    palette = palette_for(shot.picture.time, shot.picture.weather, shot.picture.mood)
    return Layers(back=back, front=None, mask=None, palette=palette)
