"""Draws pictograms of the Material Design Icons and of Font Awesome in the colours of a picture: alone, or on a round plate (B6).

The fonts come with the wheel `QtAwesome` (MIT; the Material Design Icons are under the Apache License 2.0, the fonts of
Font Awesome Free under the SIL OFL 1.1 and its icons under CC BY 4.0). Only the fonts and their lists of names are read:
nothing of Qt is needed.
"""

# ruff: noqa: E501  a table reads better unbroken

import json
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from PIL import Image, ImageDraw, ImageFilter, ImageFont, ImageOps

from patra.kernel.errors import ConfigInvalid
from patra.studio.paint.canvas import Canvas
from patra.studio.paint.palette import Colour, mix, scale_colour
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


FONTS = {"": "materialdesignicons6-webfont", "fa": "fontawesome6-solid-webfont"}


@lru_cache(maxsize=2)
def _files(kind: str = "") -> tuple[Path, dict[str, str]]:
    """A font, and the character of each of its names."""
    spec = find_spec("qtawesome")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigInvalid(
            Reason.EXTRA_MISSING,
            "pictograms need the font of QtAwesome",
            place="studio",
            advice="pip install 'patra[studio]'",
        )
    folder = Path(spec.submodule_search_locations[0]) / "fonts"
    names = max(folder.glob(f"{FONTS[kind]}-charmap-*.json"))
    font = max(folder.glob(f"{FONTS[kind]}-[0-9]*.ttf"))
    return font, {name: chr(int(code, 16)) for name, code in json.loads(names.read_text("utf-8")).items()}


def _find_font(name: str) -> tuple[Path, str]:
    """The font and the character of a pictogram; no character where no font has it."""
    kind, mark, own = name.rpartition(":")
    font, names = _files(kind if mark else "")
    return font, names.get(own, "")


def has_glyph(name: str) -> bool:
    return bool(_find_font(name)[1])


@lru_cache(maxsize=256)
def glyph(name: str, pixels: int) -> Image.Image:
    """The shape of a pictogram as a mask, its edges at the edges of the image."""
    font, letter = _find_font(name)
    face = ImageFont.truetype(str(font), pixels)
    mask = Image.new("L", (pixels * 2, pixels * 2), 0)
    ImageDraw.Draw(mask).text((pixels, pixels), letter, font=face, fill=255, anchor="mm")
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


_NATURAL: dict[Colour, str] = {
    (
        200,
        62,
        54,
    ): "food-apple fruit-cherries chili-mild fire fire-truck heart-pulse mailbox gift fa:pepper-hot fa:drumstick-bite fa:shrimp fa:trowel-bricks flower-poppy lipstick ambulance fruit-watermelon rug curtains tomato magnet",
    (
        226,
        124,
        44,
    ): "fa:kiwi-bird carrot pumpkin fruit-citrus volcano campfire traffic-light basketball kangaroo cat fishbowl turkey",
    (
        150,
        98,
        60,
    ): "fa:crow fa:otter fa:cow fa:horse-head fa:paw fa:box-open fa:drum fa:guitar fa:basket-shopping fa:cart-flatbed fa:chair fa:couch fa:mug-hot fa:sleigh fa:crutch fa:scroll fa:mound bread-slice baguette cookie cupcake sack barrel package-variant table-furniture chair-rolling violin guitar-acoustic bench owl teddy-bear donkey dog horse rodent basket bow-arrow barn wardrobe cupboard cradle paw bat peanut pretzel muffin boomerang fence bridge door stairs cart door turkey coffin piano treasure-chest hops",
    (
        222,
        168,
        40,
    ): "fa:lemon fa:wheat-awn fa:coins fa:medal corn cheese bee beehive-outline hexagon-multiple white-balance-sunny weather-sunny star key trophy crown medal hand-coin lightbulb-on candle lamp bell barley taxi banana trumpet saxophone bugle ring chandelier candelabra pot-gold diamond lightning-bolt excavator bulldozer crane gold",
    (
        74,
        138,
        72,
    ): "fa:frog fa:dragon fa:locust fa:worm fa:seedling fa:plant-wilt fa:bowl-food fa:jar sprout leaf pine-tree tree grass cactus clover snake turtle tortoise tractor palm-tree leek recycle seed soccer-field greenhouse cash",
    (
        58,
        122,
        186,
    ): "fa:fish-fins fa:ship fa:glass-water fa:bottle-water fa:water fa:sink fa:dove fa:icicles water waves umbrella airplane car bus train ferry sail-boat fish dolphin shark whale earth pool water-well fountain snowflake bicycle tram submarine washing-machine shower waterfall weather-windy weather-pouring",
    (
        112,
        120,
        130,
    ): "tire fa:kitchen-set fa:gears fa:link fa:faucet fa:screwdriver-wrench fa:cubes-stacked fa:smog fa:monument fa:hippo fa:mountain fa:weight-hanging knife wrench hammer nail cog anvil sword-cross axe screwdriver saw-blade engine pipe anchor elephant needle pickaxe shovel pot-steam kettle silverware-fork-knife silverware-spoon scissors-cutting battery tank robot safe spear shield factory pillar grave-stone hook rake sickle terrain",
    (214, 126, 150): "pig flower flower-tulip brain cake candy ice-cream",
    (120, 92, 168): "fruit-grapes butterfly unicorn palette drama-masks",
}
"""What has a colour of its own, by its pictogram; everything else takes the accent of its picture."""


@lru_cache(maxsize=1)
def _colours() -> dict[str, Colour]:
    return {name: colour for colour, names in _NATURAL.items() for name in names.split()}


def colour_of(name: str, accent: Colour) -> Colour:
    return _colours().get(name) or mix(scale_colour(accent, 0.8), (40, 36, 48), 0.15)


def sticker(c: Canvas, name: str, x: float, y: float, radius: float, accent: Colour) -> None:
    """A pictogram in its own colour, cut out with a rim of paper and a shadow: a thing of the scene."""
    size = 1.75 * radius
    mask = glyph(name, max(8, round(size * c.h)))
    factor, rim = size * c.h / max(mask.size), max(2, round(0.013 * c.h))
    mask = mask.resize(
        (max(1, round(mask.width * factor)), max(1, round(mask.height * factor))), Image.Resampling.LANCZOS
    )
    shape = Image.new("L", (mask.width + 4 * rim, mask.height + 4 * rim), 0)
    shape.paste(mask, (2 * rim, 2 * rim))
    outer = _fill_holes(shape).filter(ImageFilter.GaussianBlur(rim * 0.8)).point([min(255, v * 9) for v in range(256)])
    left, top = (round(v - n / 2) for v, n in zip(c.at(x, y), shape.size, strict=True))
    left, top = max(0, left), max(0, top)
    own = colour_of(name, accent)
    for tone, cut, dx, alpha in ((((20, 14, 18)), outer, round(0.008 * c.h), 80), (PAPER, outer, 0, 255)):
        ink = Image.new("RGBA", shape.size, (*tone, 255))
        ink.putalpha(cut.point([v * alpha // 255 for v in range(256)]))
        c.image.alpha_composite(ink, (left + dx // 2, top + dx))
    light, dark = mix(own, (255, 255, 255), 0.16), scale_colour(own, 0.8)
    rows = [mix(light, dark, k / max(1, shape.height - 1)) for k in range(shape.height)]
    ink = Image.new("RGB", (1, shape.height))
    ink.putdata(rows)
    fill = ink.resize(shape.size).convert("RGBA")
    fill.putalpha(shape)
    c.image.alpha_composite(fill, (left, top))
    c.pen = ImageDraw.Draw(c.image)


def _fill_holes(shape: Image.Image) -> Image.Image:
    """The shape without the holes inside it, so that the paper behind a pictogram is whole."""
    around = ImageOps.expand(shape.point([255 if v > 60 else 0 for v in range(256)]), 1, 0)
    ImageDraw.floodfill(around, (0, 0), 128)
    whole = around.point([0 if v == 128 else 255 for v in range(256)])
    return whole.crop((1, 1, whole.width - 1, whole.height - 1))


def plate(c: Canvas, name: str, x: float, y: float, radius: float, accent: Colour) -> None:
    """A pictogram on a round plate with a rim and a shadow."""
    c.oval(x + 0.004, y + radius * 0.08, radius * 1.02, radius * 1.02, (16, 12, 18), 70)
    c.oval(x, y, radius, radius, scale_colour(accent, 0.9))
    c.oval(x, y, radius * 0.93, radius * 0.93, PAPER)
    c.oval(x, y + radius * 0.16, radius * 0.74, radius * 0.74, mix(PAPER, accent, 0.12))
    lay_glyph(c, name, x, y, radius * 1.16, scale_colour(colour_of(name, accent), 0.9))
