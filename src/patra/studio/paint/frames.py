"""Turns a shot's picture and sound into its raw frames, one after another: camera, weather, narrator, cuts (B6).

Frames are made one at a time and never held, so memory does not grow with the film.
"""

from collections.abc import Iterator
from functools import lru_cache

import msgspec
from PIL import Image

from patra.studio.paint.camera import Camera
from patra.studio.paint.lettering import title_card
from patra.studio.paint.narrator import Narrator, lay_mouth
from patra.studio.paint.scene import Layers, paint
from patra.studio.paint.scenery.weather import Overlay, overlay_for
from patra.studio.script.shots import Picture
from patra.studio.voice.espeak import Mark
from patra.studio.voice.visemes import SHAPES, Mouth

BLEND, DIP_IN, DIP_OUT, OPEN, END = 0.45, 0.35, 0.3, 0.9, 1.3  # seconds
UPRIGHT_TOP = 0.36  # share of the free height that is above the picture of an upright film
CLEARS = 0.45  # seconds that a card takes to clear once the title has gone
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
    spoken: tuple[Mark, ...] = ()  # when who speaks; their mouths move, and the narrator's does not
    still: bool = False  # no camera: the plain profile
    narrator: bool = True
    smooth: float = 1.6


def render(shot: ShotFrames, mouth: Mouth | None) -> Iterator[bytes]:
    """The raw RGB frames of a drawn shot."""
    height = min(shot.height, shot.width) if shot.height > shot.width else shot.height
    layers = _paint_layers(shot.picture, shot.width, height, shot.smooth)
    backdrop = _backdrop(layers, shot.width, shot.height) if height < shot.height else None
    overlay = overlay_for(shot.picture, layers.palette)
    narrator = Narrator(mouth, shot.width, shot.height) if mouth and shot.narrator else None
    last: Image.Image | None = None
    lettered = shot.before is not None and shot.before.framing == shot.picture.framing == "card"
    if shot.before is not None and shot.cut == "blend" and not lettered:  # two texts over each other are none
        past = _paint_layers(shot.before, shot.width, height, shot.smooth)
        last = _lay_picture(Camera(past, shot.before.camera, shot.width, height).at(1.0), backdrop)
    camera = Camera(layers, "" if shot.still else shot.picture.camera, shot.width, height)
    for number in range(shot.frames):
        moment = number / max(1, shot.frames - 1)
        picture = camera.at(moment)
        if mouth is not None and (speaker := speaker_at(shot, number)) in layers.mouths:
            x, y, radius, skin = layers.mouths[speaker]
            x, y, scale = camera.in_front(moment, x, y)
            lay_mouth(picture, SHAPES[mouth.shapes[number]], x, y, radius * scale, skin)
        seen = _lay_picture(picture, backdrop)
        if shot.title and shot.picture.framing == "card":
            seen = _dim_frame(seen, number / shot.fps)
        yield finish(seen, shot, number, overlay, narrator, last)


def speaker_at(shot: ShotFrames, number: int) -> str:
    """Who of the chapter speaks at a frame; nobody where the narrator does."""
    at = 1000 * number / shot.fps
    return next((mark.text for mark in shot.spoken if mark.at <= at < mark.end), "")


def render_still(shot: ShotFrames) -> Image.Image:
    """The middle of a shot, without narrator and weather."""
    frame = list(render(shot, None))[shot.frames // 2]
    return Image.frombytes("RGB", (shot.width, shot.height), frame)


def _dim_frame(frame: Image.Image, seconds: float) -> Image.Image:
    """A card behind the title: dark and out of focus until the title has gone, so that each can be read."""
    share = min(1.0, max(0.0, (TITLE[3] + CLEARS - seconds) / CLEARS))
    if share == 0:
        return frame
    small = frame.resize((max(2, frame.width // 40), max(2, frame.height // 40)), Image.Resampling.BOX)
    dark = small.resize(frame.size, Image.Resampling.BICUBIC).point([round(v * 0.38) for v in range(256)] * 3)
    return Image.blend(frame, dark, share)


def _backdrop(layers: Layers, width: int, height: int) -> Image.Image:
    """What an upright film shows above and below its square picture: the picture itself, large and out of focus."""
    small = layers.back.resize((max(2, width // 24), max(2, height // 24)), Image.Resampling.BOX)
    soft = small.resize((width, height), Image.Resampling.BICUBIC)
    return soft.point([round(v * 0.62) for v in range(256)] * 3)


def _lay_picture(seen: Image.Image, backdrop: Image.Image | None) -> Image.Image:
    """The picture on its backdrop, a little above the middle: below it are the subtitles and the narrator."""
    if backdrop is None:
        return seen
    frame = backdrop.copy()
    frame.paste(seen, (0, round((backdrop.height - seen.height) * UPRIGHT_TOP)))
    return frame


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
        narrator.lay(frame, number, silent=bool(speaker_at(shot, number)))
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
def _paint_layers(picture: Picture, width: int, height: int, smooth: float) -> Layers:
    return paint(picture, width, height, smooth)


@lru_cache(maxsize=2)
def _card(title: str, language: str, width: int, height: int) -> Image.Image:
    return title_card(title, language, width, height)
