"""Draws pictograms of the Material Design Icons in the colours of a picture: alone, or on a round plate (B6).

The font comes with the wheel `QtAwesome` (MIT; the icons are under the Apache License 2.0). Only the font and its list
of names are read: nothing of Qt is needed.
"""

import json
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from patra.kernel.errors import ConfigInvalid
from patra.studio.paint.canvas import Canvas
from patra.studio.paint.palette import Colour, mix, scaled
from patra.studio.vocabulary.reasons import Reason

PAPER: Colour = (250, 244, 230)

MOTIF_GLYPHS = {
    "lighthouse": "lighthouse-on",
    "boat": "sail-boat", "house": "home", "tree": "tree", "blossom": "flower-poppy", "leaf": "leaf",
    "flower": "flower", "bird": "bird", "moon": "moon-waning-crescent", "sun": "white-balance-sunny", "star": "star",
    "fire": "fire", "lamp": "lamp", "candle": "candle", "window": "window-closed-variant", "door": "door",
    "book": "book-open-page-variant", "letter": "email", "clock": "clock-outline", "key": "key", "cup": "tea",
    "umbrella": "umbrella", "bell": "bell", "bridge": "bridge", "train": "train", "fence": "fence", "cat": "cat",
    "dog": "dog", "horse": "horse", "fish": "fish", "map": "map", "bicycle": "bicycle", "paperboat": "sail-boat",
}  # fmt: skip
"""Our own motifs as pictograms, where they are listed and not painted into a scene."""


@lru_cache(maxsize=1)
def _files() -> tuple[Path, dict[str, str]]:
    """The font, and the character of each name."""
    spec = find_spec("qtawesome")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigInvalid(
            Reason.EXTRA_MISSING,
            "pictograms need the font of QtAwesome",
            place="studio",
            advice="pip install 'patra[studio]'",
        )
    folder = Path(spec.submodule_search_locations[0]) / "fonts"
    names = max(folder.glob("materialdesignicons6-webfont-charmap-*.json"))
    font = max(folder.glob("materialdesignicons6-webfont-*.ttf"))
    return font, {name: chr(int(code, 16)) for name, code in json.loads(names.read_text("utf-8")).items()}


def has_glyph(name: str) -> bool:
    return name in _files()[1]


@lru_cache(maxsize=256)
def glyph(name: str, pixels: int) -> Image.Image:
    """The shape of a pictogram as a mask, its edges at the edges of the image."""
    font, names = _files()
    face = ImageFont.truetype(str(font), pixels)
    mask = Image.new("L", (pixels * 2, pixels * 2), 0)
    ImageDraw.Draw(mask).text((pixels, pixels), names[name], font=face, fill=255, anchor="mm")
    return mask.crop(mask.getbbox() or (0, 0, pixels, pixels))


def lay_glyph(c: Canvas, name: str, x: float, y: float, size: float, colour: Colour) -> None:
    """A pictogram around a place, its larger side so many heights."""
    mask = glyph(name, max(8, round(size * c.h)))
    factor = size * c.h / max(mask.size)
    mask = mask.resize(
        (max(1, round(mask.width * factor)), max(1, round(mask.height * factor))), Image.Resampling.LANCZOS
    )
    cx, cy = c.at(x, y)
    ink = Image.new("RGBA", mask.size, (*colour, 255))
    ink.putalpha(mask)
    c.image.alpha_composite(ink, (max(0, round(cx - mask.width / 2)), max(0, round(cy - mask.height / 2))))
    c.pen = ImageDraw.Draw(c.image)


def plate(c: Canvas, name: str, x: float, y: float, radius: float, accent: Colour) -> None:
    """A pictogram on a round plate with a rim and a shadow."""
    c.oval(x + 0.004, y + radius * 0.08, radius * 1.02, radius * 1.02, (16, 12, 18), 70)
    c.oval(x, y, radius, radius, scaled(accent, 0.9))
    c.oval(x, y, radius * 0.93, radius * 0.93, PAPER)
    c.oval(x, y + radius * 0.16, radius * 0.74, radius * 0.74, mix(PAPER, accent, 0.12))
    lay_glyph(c, name, x, y, radius * 1.12, mix(scaled(accent, 0.62), (30, 28, 40), 0.35))
