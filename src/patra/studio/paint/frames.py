"""A shot's picture and sound go in; its raw frames come out, one after another: camera, weather, narrator, cuts (B6).

Frames are made one at a time and never held, so memory does not grow with the film.
"""

from collections.abc import Iterator
from functools import lru_cache

import msgspec
from PIL import Image

from patra.studio.paint.camera import Camera
from patra.studio.paint.lettering import title_card
from patra.studio.paint.narrator import Narrator
from patra.studio.paint.scene import Layers, paint
from patra.studio.paint.weather import Overlay, overlay_for
from patra.studio.script.shots import Picture
from patra.studio.voice.visemes import Mouth

BLEND, DIP_IN, DIP_OUT, OPEN, END = 0.45, 0.35, 0.3, 0.9, 1.3  # seconds
TITLE = (0.25, 0.6, 2.0, 2.6)  # seconds: begins, is whole, begins to go, is gone


class ShotFrames(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the frames of a shot depend on."""

    picture: Picture
    before: Picture | None
    cut: str  # open, blend, dip
    leaves: str  # cut, dip, end
    title: str
    language: str
    frames: int
    fps: int
    width: int
    height: int
    still: bool = False  # no camera: the plain profile
    smooth: float = 1.6


def render(shot: ShotFrames, mouth: Mouth | None) -> Iterator[bytes]:
    """The raw RGB frames of a drawn shot."""
    layers = _painted(shot.picture, shot.width, shot.height, shot.smooth)
    overlay = overlay_for(shot.picture, layers.palette)
    narrator = Narrator(mouth, shot.width, shot.height) if mouth else None
    last: Image.Image | None = None
    if shot.before is not None and shot.cut == "blend":
        past = _painted(shot.before, shot.width, shot.height, shot.smooth)
        last = Camera(past, shot.before.camera, shot.width, shot.height).at(1.0)
    camera = Camera(layers, "" if shot.still else shot.picture.camera, shot.width, shot.height)
    for number in range(shot.frames):
        seen = camera.at(number / max(1, shot.frames - 1))
        yield finish(seen, shot, number, overlay, narrator, last)


def finish(
    frame: Image.Image,
    shot: ShotFrames,
    number: int,
    overlay: Overlay | None,
    narrator: Narrator | None,
    last: Image.Image | None,
) -> bytes:
    """What comes over the picture: weather, the blend from before, the title, the narrator, dips to black."""
    seconds = number / shot.fps
    if overlay:
        overlay(frame, seconds)
    if last is not None and seconds < BLEND:
        frame = Image.blend(last, frame, seconds / BLEND)
    if shot.title and seconds < TITLE[3]:
        _lay_title(frame, shot, seconds)
    if narrator:
        narrator.lay(frame, number)
    light = _light(shot, number)
    if light < 1:
        frame = frame.point([round(v * light) for v in range(256)] * 3)
    return frame.tobytes()


def _light(shot: ShotFrames, number: int) -> float:
    """1 in full light, 0 in the dark."""
    into, left = number / shot.fps, (shot.frames - 1 - number) / shot.fps
    light = 1.0
    if shot.cut == "open":
        light = min(light, into / OPEN)
    elif shot.cut == "dip":
        light = min(light, into / DIP_IN)
    if shot.leaves == "dip":
        light = min(light, left / DIP_OUT)
    elif shot.leaves == "end":
        light = min(light, left / END)
    return light


def _lay_title(frame: Image.Image, shot: ShotFrames, seconds: float) -> None:
    begins, whole, goes, gone = TITLE
    share = min((seconds - begins) / (whole - begins), (gone - seconds) / (gone - goes), 1.0)
    if share <= 0:
        return
    card = _card(shot.title, shot.language, shot.width, shot.height)
    mask = card.getchannel("A")
    frame.paste(card, (0, 0), mask if share >= 1 else mask.point([round(v * share) for v in range(256)]))


@lru_cache(maxsize=4)
def _painted(picture: Picture, width: int, height: int, smooth: float) -> Layers:
    return paint(picture, width, height, smooth)


@lru_cache(maxsize=2)
def _card(title: str, language: str, width: int, height: int) -> Image.Image:
    return title_card(title, language, width, height)
