"""Draws an illustrated page: the text's own words, with what of its scene is certain (B6).

A small picture of the place, portraits with names, pictograms; a quotation with who says it; or lettering alone. The
layout changes from shot to shot, the paper with the hour: by night it is dark.
"""

import msgspec
from PIL import Image, ImageDraw

from patra.studio.paint.canvas import Canvas
from patra.studio.paint.cards import (
    INK,
    LONG,
    accent_of,
    block,
    glyphs_of,
    paint_paper,
    paint_progress,
    shrink,
    text_at,
)
from patra.studio.paint.figures import HEIGHT, YOUNG, person
from patra.studio.paint.palette import Colour, mix, palette_for, scale_colour
from patra.studio.paint.pictogram import PAPER, plate
from patra.studio.paint.portraits import SOMEONE, paint_portrait
from patra.studio.paint.scenery.interiors import paint_interior
from patra.studio.paint.scenery.places import paint_place
from patra.studio.script.facts import Card
from patra.studio.script.lexicon import INSIDE
from patra.studio.script.shots import Figure, Picture
from patra.studio.script.signs import is_room, set_of

PAGES = frozenset({"words", "quote", "page"})  # the kinds of cards that are pages
LEFT, RIGHT, TOP, BOTTOM = 0.13, 0.87, 0.14, 0.72
DARK_PAPER: Colour = (34, 38, 58)
MOST_PORTRAITS = 3
MOST_PLATES = 3
FIGURE_X = 0.22
NAME_Y, NAME_WIDE = 0.6, 0.22  # of who stands: above the narrator, within the frame
SAFE = 0.09  # from the edge, which a pan may not show
SMALLEST = 0.026  # letters of a name
WIDEST_SQUARE = 1.3  # width by height, up to which a picture is no wide one


class Page(msgspec.Struct, frozen=True):
    """The colours of a page."""

    accent: Colour
    ink: Colour
    paper: Colour


def paint_page(c: Canvas, front: Canvas, picture: Picture) -> None:
    """A card of the kinds `words`, `quote` and `page`; someone who stands on it is painted in front."""
    card = picture.card or Card(kind="words")
    accent = accent_of(picture)
    dark = picture.time == "night"
    page = Page(mix(accent, PAPER, 0.35), PAPER, mix(DARK_PAPER, accent, 0.16)) if dark else Page(accent, INK, PAPER)
    if dark:
        _night(c, page)
    else:
        paint_paper(c, accent)
    match card.kind:
        case "quote":
            _quote(c, front, picture, card, page)
        case "page":
            _page(c, front, picture, card, page)
        case _:
            _words(c, card.title, picture.layout % 2 if card.step else picture.layout, page)
    if card.step:
        paint_progress(c, *card.step, accent)


def _night(c: Canvas, page: Page) -> None:
    c.gradient([(0, scale_colour(page.paper, 0.8)), (0.7, page.paper), (1, mix(page.paper, page.accent, 0.14))])
    for _ in range(34):
        r = 0.0012 + 0.002 * c.rng.random()
        c.oval(c.rng.random(), 0.9 * c.rng.random(), r, r, page.ink, 90)
    c.line([(0.05, 0.9), (0.95, 0.9)], mix(page.paper, page.accent, 0.4), 0.003)


def _words(c: Canvas, words: str, layout: int, page: Page) -> None:
    lines = 4 if len(words) < LONG else 6
    if layout == 0:
        c.box(LEFT - 0.01, TOP + 0.05, 0.012, BOTTOM - TOP - 0.1, page.accent, round_=0.006)
        block(c, words, (LEFT + 0.025, TOP, RIGHT, BOTTOM), 0.098, page.ink, lines)
    elif layout == 1:
        for y, wide in ((TOP + 0.015, 0.08), (BOTTOM - 0.015, 0.08)):
            c.line([(0.5 - wide, y), (0.5 - 0.016, y)], page.accent, 0.005)
            c.line([(0.5 + 0.016, y), (0.5 + wide, y)], page.accent, 0.005)
            c.oval(0.5, y, 0.009, 0.009, page.accent)
        block(c, words, (LEFT + 0.02, TOP + 0.05, RIGHT - 0.02, BOTTOM - 0.05), 0.092, page.ink, lines, centred=True)
    else:
        c.box(0.075, 0.085, 0.85 * c.aspect, 0.7, page.accent, 60, round_=0.03)
        c.box(0.083, 0.099, 0.834 * c.aspect, 0.672, page.paper, 235, round_=0.024)
        c.box(LEFT, TOP + 0.045, 0.07 * c.aspect, 0.01, page.accent, round_=0.004)
        block(c, words, (LEFT, TOP + 0.05, RIGHT - 0.02, BOTTOM), 0.09, page.ink, lines)


def _stands(c: Canvas, picture: Picture) -> bool:
    """Whether one person is shown standing: alone, of certain looks, where there is room."""
    return c.aspect >= WIDEST_SQUARE and len(picture.portraits) == 1 and picture.portraits[0].kind != SOMEONE


def _standing(c: Canvas, front: Canvas, figure: Figure, page: Page) -> None:
    """Someone at the left, from head to knees, with the name; a wash of colour behind."""
    for share, r in ((0.16, 0.3), (0.3, 0.24)):
        c.oval(FIGURE_X, 0.52, r, r * 1.25, mix(page.paper, page.accent, share))
    size = 0.8 * (1.18 if figure.kind in YOUNG else 1.0)
    person(front, figure, FIGURE_X, 0.26 + size * HEIGHT.get(figure.kind, 1.0), size, 1.0)


def _quote(c: Canvas, front: Canvas, picture: Picture, card: Card, page: Page) -> None:
    """What someone says between large marks; who says it below, with a portrait where that is certain."""
    left, right = LEFT, RIGHT
    if _stands(c, picture):
        _standing(c, front, picture.portraits[0], page)
        _name(front, picture.portraits[0].name, picture, (FIGURE_X, NAME_Y), 0.046, page, NAME_WIDE)
        left = 0.42
    elif picture.portraits:
        side = LEFT + 0.075 if picture.layout != 1 else RIGHT - 0.075
        _faces(c, picture, side, 0.36, 0.155 * shrink(c), page)
        left, right = (LEFT + 0.21, RIGHT) if picture.layout != 1 else (LEFT, RIGHT - 0.21)
    text_at(c, left - 0.012, TOP - 0.07, "“", 0.32 * shrink(c), mix(page.accent, page.paper, 0.25))
    block(c, card.title, (left, TOP + 0.1, right, BOTTOM), 0.088, page.ink, 4 if len(card.title) < LONG else 6)


def _page(c: Canvas, front: Canvas, picture: Picture, card: Card, page: Page) -> None:
    """The sentence, and beside or below its illustration."""
    narrow = c.aspect < WIDEST_SQUARE
    layout = 2 if narrow else picture.layout
    placed = picture.vignette and bool(picture.place or set_of(picture.sign))
    glyphs = glyphs_of(picture)[:MOST_PLATES]
    many = len(picture.portraits[:MOST_PORTRAITS])
    layout = 2 if many > 1 and not placed else layout
    if not placed and _stands(c, picture):
        _standing(c, front, picture.portraits[0], page)
        _name(front, picture.portraits[0].name, picture, (FIGURE_X, NAME_Y), 0.046, page, NAME_WIDE)
        block(
            c,
            card.title,
            (0.42, TOP, RIGHT, BOTTOM - (0.13 if glyphs else 0.0)),
            0.08,
            page.ink,
            5 if len(card.title) < LONG else 7,
        )
        _plates(c, glyphs, 0.455, BOTTOM - 0.05, 0.055, page)
        return
    if layout == 2:
        text_top = 0.45
        if placed:
            _vignette(c, picture, (0.13, 0.1, 0.87, 0.43), page)
            _faces(c, picture, 0.76 - 0.065 * (many - 1), 0.36, 0.085 * shrink(c), page)
            text_top = 0.49 if many else 0.46
        else:
            _faces(c, picture, 0.5 - 0.03 * len(glyphs), 0.25, 0.125 * shrink(c), page)
            _plates(c, glyphs, 0.56 + 0.09 * many, 0.25, 0.075 * shrink(c), page)
        block(c, card.title, (LEFT, text_top, RIGHT, BOTTOM + 0.03), 0.07, page.ink, 4, centred=True)
        return
    left, right, middle = (0.45, RIGHT, 0.265) if layout == 0 else (LEFT, 0.55, 0.735)
    bottom = BOTTOM - (0.13 if glyphs else 0.0)
    if placed:
        _vignette(c, picture, (middle - 0.145, 0.13, middle + 0.145, 0.47 if many else 0.66), page)
        _faces(c, picture, middle, 0.555, 0.078 * shrink(c), page)
    else:
        _faces(c, picture, middle, 0.37, (0.17, 0.125, 0.088)[max(0, many - 1)] * shrink(c), page)
    block(c, card.title, (left, TOP, right, bottom), 0.075, page.ink, 5 if len(card.title) < LONG else 7)
    _plates(c, glyphs, left + 0.035, BOTTOM - 0.05, 0.055 * shrink(c), page)


def _plates(c: Canvas, glyphs: list[str], x: float, y: float, radius: float, page: Page) -> None:
    for k, name in enumerate(glyphs):
        middle = x + 2.5 * k * radius / c.aspect
        if middle + radius / c.aspect <= 1 - SAFE:
            plate(c, name, middle, y, radius, page.accent)


def _faces(c: Canvas, picture: Picture, middle: float, y: float, radius: float, page: Page) -> None:
    """Portraits in a row around a place, each with its name."""
    shown = picture.portraits[:MOST_PORTRAITS]
    for k, figure in enumerate(shown):
        x = middle + (k - (len(shown) - 1) / 2) * 2.35 * radius / c.aspect
        paint_portrait(c, figure, x, y, radius, page.accent)
        wide = 2.3 * radius / c.aspect
        _name(c, figure.name, picture, (x, y + radius + 0.012), min(0.046, radius * 0.42), page, wide)


def _name(
    c: Canvas, name: str, picture: Picture, at: tuple[float, float], size: float, page: Page, wide: float = 0.3
) -> None:
    """A name on a strip, its middle below a place."""
    if not _is_name(name, picture):
        return
    share = 1.0 if name > "一" else 0.52
    while size > SMALLEST and len(name) * size * share / c.aspect > wide:
        size *= 0.94
    most = max(2, int(wide * c.aspect / (size * share)))
    shown = name if len(name) <= most else f"{name[: most - 1].rstrip()}…"
    length = len(shown) * size * (share + 0.04) + size
    half = length / 2 / c.aspect
    at = (min(max(at[0], SAFE + half), 1 - SAFE - half), at[1])
    c.box(at[0] - length / 2 / c.aspect, at[1] + 0.002, length, size * 1.42, page.paper, 225, round_=size * 0.6)
    text_at(c, at[0], at[1], shown[:1].upper() + shown[1:], size, page.ink, "ma")


def _is_name(name: str, picture: Picture) -> bool:
    """Whether the word for a person is lettered: in the text's own letters, and no number of a group."""
    words = picture.card.title if picture.card else ""
    return bool(name) and not name[-1:].isdigit() and (name > "一" or words < "一" or name[:1].isupper())


def _vignette(c: Canvas, picture: Picture, box: tuple[float, float, float, float], page: Page) -> None:
    """The place in a frame, nobody in it."""
    left, top, right, bottom = box
    width, height = max(16, round((right - left) * c.w)), max(16, round((bottom - top) * c.h))
    plain = msgspec.structs.replace(
        picture,
        framing="wide",
        card=None,
        portraits=(),
        view=0,
        motifs=tuple(m for m in picture.motifs if m not in (*picture.spoken, *picture.uncertain)),
    )
    full = max(width, round(height * 16 / 9))
    scene = Canvas(full, round(full * 9 / 16), palette_for(picture.time, picture.weather, picture.mood), picture.seed)
    inside = picture.place in INSIDE or is_room(picture.sign)
    paint_interior(scene, plain) if inside else paint_place(scene, plain)
    image = scene.image.convert("RGBA")
    x0, y0 = (image.width - width) // 2, max(0, round((image.height - height) * 0.7))
    image = image.crop((x0, y0, x0 + width, y0 + height))
    mask = Image.new("L", image.size, 0)
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, width - 1, height - 1), round(0.025 * c.h), fill=255)
    image.putalpha(mask)
    edge = 0.008
    c.box(
        left - edge / c.aspect,
        top - edge,
        (right - left) * c.aspect + 2 * edge,
        bottom - top + 2 * edge,
        page.accent,
        round_=0.03,
    )
    cx, cy = c.at(left, top)
    c.image.alpha_composite(image, (round(cx), round(cy)))
    c.pen = ImageDraw.Draw(c.image)
