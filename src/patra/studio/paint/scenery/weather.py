"""Paints rain, snow, mist, leaves, petals or fireflies into a frame by its number (B6).

Each drop's way is a function of the frame's number alone, so any frame can be drawn without the ones before it.
"""

import math
import random
from collections.abc import Callable

from PIL import Image, ImageDraw

from patra.studio.paint.palette import Palette, mix
from patra.studio.script.scenes import INSIDE
from patra.studio.script.shots import Picture
from patra.studio.script.signs import is_room

Overlay = Callable[[Image.Image, float], None]


def overlay_for(picture: Picture, palette: Palette) -> Overlay | None:
    """What moves in the air of this picture; called with a frame and its time in seconds."""
    if picture.framing == "card" or (not picture.place and not picture.sign and picture.weather in {"clear", "wind"}):
        return None
    if picture.place in INSIDE or is_room(picture.sign):
        return _motes(picture.seed, palette) if picture.framing == "wide" else None
    if picture.weather in {"rain", "storm"}:
        return _rain(picture.seed, palette, heavy=picture.weather == "storm")
    if picture.weather == "snow":
        return _falling(picture.seed, (244, 247, 252), 110, 0.09, round_=True)
    if "blossom" in picture.motifs:
        return _falling(picture.seed, mix((246, 186, 204), palette.near, 0.1), 34, 0.07, round_=False)
    if "leaf" in picture.motifs:
        return _falling(picture.seed, mix((204, 120, 52), palette.near, 0.25), 20, 0.09, round_=False)
    if picture.time == "night" and picture.place in {"garden", "forest", "field", "river", "lake"}:
        return _motes(picture.seed, palette)
    return None


def _rain(seed: int, palette: Palette, *, heavy: bool) -> Overlay:
    rng = random.Random(seed)
    drops = [(rng.random(), rng.random(), 0.5 + 0.5 * rng.random()) for _ in range(170 if heavy else 100)]
    light = mix(palette.horizon, (235, 240, 248), 0.5)

    def draw(frame: Image.Image, t: float) -> None:
        pen = ImageDraw.Draw(frame, "RGBA")
        w, h = frame.size
        for x, y, z in drops:
            py = (y + t * (1.5 + 0.8 * z)) % 1.15 - 0.1
            px = (x - 0.12 * py + t * 0.05) % 1.0
            length = (0.035 + 0.045 * z) * h
            pen.line(
                (px * w, py * h, px * w - 0.12 * length, py * h + length),
                fill=(*light, int(40 + 80 * z)),
                width=1 if z < 0.8 else max(1, h // 360),
            )
        if heavy and (t * 0.37 + seed % 7) % 3 < 0.09:
            pen.rectangle((0, 0, w, h), fill=(235, 240, 255, 90))

    return draw


def _falling(seed: int, colour: tuple[int, int, int], count: int, speed: float, *, round_: bool) -> Overlay:
    rng = random.Random(seed)
    flakes = [(rng.random(), rng.random(), 0.3 + 0.7 * rng.random(), rng.random() * 6.28) for _ in range(count)]

    def draw(frame: Image.Image, t: float) -> None:
        pen = ImageDraw.Draw(frame, "RGBA")
        w, h = frame.size
        for x, y, z, phase in flakes:
            py = (y + t * speed * (0.6 + z)) % 1.1 - 0.05
            px = (x + 0.03 * math.sin(t * 1.1 + phase) + t * 0.018 * z) % 1.0
            r = h * (0.0022 + 0.0042 * z * z) * (1.0 if round_ else 1.6)
            if round_:
                pen.ellipse((px * w - r, py * h - r, px * w + r, py * h + r), fill=(*colour, int(110 + 130 * z)))
            else:
                turn = t * 1.6 + phase
                dx, dy = math.cos(turn) * r * 1.3, math.sin(turn) * r * 0.8
                pen.polygon(
                    [
                        (px * w - dx, py * h - dy),
                        (px * w + dy, py * h - dx * 0.5),
                        (px * w + dx, py * h + dy),
                        (px * w - dy, py * h + dx * 0.5),
                    ],
                    fill=(*colour, int(150 + 100 * z)),
                )

    return draw


def _motes(seed: int, palette: Palette) -> Overlay:
    """Fireflies at night, dust in the light of a room."""
    rng = random.Random(seed)
    motes = [(rng.random(), 0.35 + 0.6 * rng.random(), rng.random() * 6.28, rng.random()) for _ in range(18)]
    colour = (255, 232, 160) if palette.dark else (255, 252, 240)

    def draw(frame: Image.Image, t: float) -> None:
        pen = ImageDraw.Draw(frame, "RGBA")
        w, h = frame.size
        for x, y, phase, z in motes:
            px = (x + 0.02 * math.sin(t * 0.5 + phase)) * w
            py = (y + 0.025 * math.sin(t * 0.37 + 2 * phase)) * h
            bright = 0.5 + 0.5 * math.sin(t * 1.4 + 3 * phase)
            r = h * 0.0022 * (0.8 + z)
            pen.ellipse((px - 2.4 * r, py - 2.4 * r, px + 2.4 * r, py + 2.4 * r), fill=(*colour, int(26 * bright)))
            pen.ellipse((px - r, py - r, px + r, py + r), fill=(*colour, int(150 * bright)))

    return draw
