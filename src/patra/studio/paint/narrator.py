"""Turns mouth shapes into a small portrait of the narrator whose mouth follows them, frame by frame (B6,
lipsync).
"""

import math
from functools import lru_cache

from PIL import Image, ImageDraw

from patra.studio.paint.palette import Colour, mix, scale_colour
from patra.studio.voice.visemes import SHAPES, Mouth

NARRATOR_VERSION = "narrator-3"
SIZE = 0.25  # of the frame's height
MARGIN = 0.035

_SKIN: Colour = (232, 190, 158)
_HAIR: Colour = (66, 48, 46)
_COAT: Colour = (54, 74, 96)
_LIP: Colour = (178, 84, 78)

# half width, half height, teeth, tongue, pucker; in head radii
_MOUTHS = {
    "rest": (0.26, 0.0, 0.0, 0.0),
    "closed": (0.22, 0.0, 0.0, 0.0),
    "teeth": (0.24, 0.07, 1.0, 0.0),
    "small": (0.2, 0.075, 0.6, 0.0),
    "wide": (0.31, 0.1, 0.7, 0.0),
    "open": (0.25, 0.21, 0.35, 0.6),
    "round": (0.19, 0.19, 0.0, 0.4),
    "pucker": (0.11, 0.11, 0.0, 0.0),
    "tongue": (0.24, 0.13, 0.4, 1.0),
}


@lru_cache(maxsize=64)
def portrait(pixels: int, shape: str, blink: bool) -> Image.Image:
    """The narrator at one instant, in a round frame; RGBA."""
    big = pixels * 3
    image = Image.new("RGBA", (big, big), (0, 0, 0, 0))
    pen = ImageDraw.Draw(image)
    u = big / 2  # the frame's radius

    def oval(x: float, y: float, rx: float, ry: float, colour: Colour) -> None:
        pen.ellipse((u + (x - rx) * u, u + (y - ry) * u, u + (x + rx) * u, u + (y + ry) * u), fill=(*colour, 255))

    def shape_of(points: list[tuple[float, float]], colour: Colour) -> None:
        pen.polygon([(u + x * u, u + y * u) for x, y in points], fill=(*colour, 255))

    oval(0, 0, 0.99, 0.99, (246, 234, 208))
    for k in range(24):
        oval(0, 0.02 * k / 24, 0.94 - 0.006 * k, 0.94 - 0.006 * k, mix((72, 88, 112), (134, 138, 150), k / 24))
    shape_of([(-0.78, 1.0), (-0.64, 0.62), (-0.22, 0.46), (0.22, 0.46), (0.64, 0.62), (0.78, 1.0)], _COAT)
    shape_of([(-0.2, 0.46), (0.0, 0.72), (0.2, 0.46), (0.12, 0.36), (-0.12, 0.36)], (240, 234, 222))
    shape_of([(-0.22, 0.44), (-0.34, 0.62), (-0.02, 0.86), (0.0, 0.7)], scale_colour(_COAT, 0.8))
    shape_of([(0.22, 0.44), (0.34, 0.62), (0.02, 0.86), (0.0, 0.7)], scale_colour(_COAT, 0.8))
    oval(0, -0.16, 0.5, 0.56, _HAIR)
    shape_of([(-0.14, 0.2), (0.14, 0.2), (0.13, 0.5), (0.0, 0.58), (-0.13, 0.5)], scale_colour(_SKIN, 0.84))
    oval(-0.42, -0.02, 0.07, 0.1, scale_colour(_SKIN, 0.92))
    oval(0.42, -0.02, 0.07, 0.1, scale_colour(_SKIN, 0.92))
    oval(0, -0.04, 0.42, 0.48, _SKIN)
    shape_of(
        [
            (-0.46, -0.12),
            (-0.4, -0.5),
            (-0.1, -0.68),
            (0.26, -0.64),
            (0.46, -0.36),
            (0.46, -0.1),
            (0.36, -0.28),
            (0.1, -0.4),
            (-0.14, -0.34),
            (-0.34, -0.26),
        ],
        _HAIR,
    )
    for x in (-0.17, 0.17):
        if blink:
            pen.arc(
                (u + (x - 0.085) * u, u - 0.1 * u, u + (x + 0.085) * u, u + 0.02 * u),
                20,
                160,
                fill=(*scale_colour(_HAIR, 0.8), 255),
                width=max(2, big // 70),
            )
        else:
            oval(x, -0.06, 0.082, 0.06, (250, 248, 244))
            oval(x + 0.008, -0.055, 0.044, 0.05, (70, 60, 52))
            oval(x + 0.02, -0.075, 0.013, 0.013, (255, 255, 255))
        lift = 0.02 if shape in {"open", "wide"} else 0.0
        pen.line(
            [
                (u + (x - 0.11) * u, u - (0.2 + lift + 0.06 * x) * u),
                (u + x * u, u - (0.226 + lift) * u),
                (u + (x + 0.11) * u, u - (0.2 + lift - 0.06 * x) * u),
            ],
            fill=(*_HAIR, 255),
            width=max(2, big // 46),
            joint="curve",
        )
        oval(x * 1.5, 0.1, 0.075, 0.05, mix(_SKIN, (226, 120, 104), 0.28))
    pen.line(
        [(u + 0.01 * u, u - 0.02 * u), (u + 0.045 * u, u + 0.09 * u), (u - 0.01 * u, u + 0.1 * u)],
        fill=(*scale_colour(_SKIN, 0.76), 255),
        width=max(2, big // 80),
        joint="curve",
    )
    _mouth(pen, u, shape)
    pen.ellipse((u * 0.03, u * 0.03, u * 1.97, u * 1.97), outline=(246, 234, 208, 255), width=max(2, big // 34))
    hole = Image.new("L", (big, big), 0)
    ImageDraw.Draw(hole).ellipse((1, 1, big - 2, big - 2), fill=255)
    image.putalpha(hole)
    return image.resize((pixels, pixels), Image.Resampling.LANCZOS)


def _mouth(pen: ImageDraw.ImageDraw, u: float, shape: str) -> None:
    wide, high, teeth, tongue = _MOUTHS[shape]
    wide, high, y = wide * 0.62, high * 0.62, 0.245

    def box(w: float, h: float, dy: float = 0.0) -> tuple[float, float, float, float]:
        return (u - w * u, u + (y + dy - h) * u, u + w * u, u + (y + dy + h) * u)

    if high == 0:
        bow = [
            (u - wide * u, u + (y - 0.034) * u),
            (u - 0.4 * wide * u, u + (y + 0.01) * u),
            (u + 0.4 * wide * u, u + (y + 0.01) * u),
            (u + wide * u, u + (y - 0.034) * u),
        ]
        pen.line(bow, fill=(*_LIP, 255), width=max(2, round(u / 26)), joint="curve")
        return
    pen.ellipse(box(wide + 0.03, high + 0.03), fill=(*_LIP, 255))
    pen.ellipse(box(wide, high), fill=(74, 26, 30, 255))
    if tongue:
        pen.ellipse(box(wide * 0.66, high * 0.5, high * (0.5 if tongue < 1 else 0.1)), fill=(206, 100, 98, 255))
    if teeth:
        pen.chord(box(wide * 0.86, high * 0.86), 200, 340, fill=(250, 246, 238, 255))


def lay_mouth(frame: Image.Image, shape: str, x: float, y: float, radius: float, skin: Colour) -> None:
    """The mouth of a person in the picture, over the one that was painted."""
    wide, high, teeth, tongue = _MOUTHS[shape]
    if high == 0 or radius < 5:
        return
    side = max(8, round(radius * 1.1))
    big = side * 4
    tile = Image.new("RGBA", (big, big), (0, 0, 0, 0))
    pen = ImageDraw.Draw(tile)
    u = 4 * radius

    def oval(w: float, h: float, dy: float, colour: Colour) -> None:
        x0, y0 = big / 2, big / 2 + dy * u
        pen.ellipse((x0 - w * u, y0 - h * u, x0 + w * u, y0 + h * u), fill=(*colour, 255))

    oval(0.34, 0.24, 0.02, skin)
    oval(wide * 0.86 + 0.03, high * 0.92 + 0.03, 0.0, mix(_LIP, skin, 0.35))
    oval(wide * 0.86, high * 0.92, 0.0, (74, 26, 30))
    if tongue:
        oval(wide * 0.5, high * 0.4, high * 0.4, (206, 100, 98))
    if teeth:
        oval(wide * 0.6, high * 0.2, -high * 0.5, (250, 246, 238))
    tile = tile.resize((side, side), Image.Resampling.LANCZOS)
    frame.paste(tile, (round(x - side / 2), round(y - side / 2)), tile)


class Narrator:
    """Lays the portrait into frames of one size, at the lower left."""

    def __init__(self, mouth: Mouth, width: int, height: int) -> None:
        self._mouth = mouth
        self._blinks = frozenset(mouth.blinks)
        short = min(width, height)
        self._pixels = round(SIZE * short)
        self._place = (round(MARGIN * short), height - self._pixels - round(MARGIN * short))

    def lay(self, frame: Image.Image, number: int, *, silent: bool = False) -> None:
        """The narrator at a frame; silent while a character speaks."""
        heard = number < len(self._mouth.shapes) and not silent
        shape = SHAPES[self._mouth.shapes[number]] if heard else "rest"
        sprite = portrait(self._pixels, shape, number in self._blinks)
        bob = round(self._pixels * 0.008 * math.sin(number / self._mouth.fps * 2.1))
        frame.paste(sprite, (self._place[0], self._place[1] + bob), sprite)
