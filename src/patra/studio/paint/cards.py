"""Draws what has no place: a definition, a number, a comparison, a list, things, or plain lettering (B6).

Paper, ink and one accent colour: a style of its own, so that nobody takes a card for a scene. Everything stays clear of
the edges, where the camera moves, and of the narrator and the subtitles at the bottom.
"""

import math

from PIL import ImageDraw

from patra.studio.paint.canvas import Canvas
from patra.studio.paint.lettering import font, wrap_lines
from patra.studio.paint.palette import Colour, hue_colour, mix, scale_colour
from patra.studio.paint.pictogram import MOTIF_GLYPHS, PAPER, has_glyph, plate
from patra.studio.script.certainty.exact import is_exact
from patra.studio.script.facts import Card
from patra.studio.script.pictograms import pictogram_of_motif, pictogram_words
from patra.studio.script.shots import Picture

LEFT, RIGHT, TOP, BOTTOM = 0.14, 0.86, 0.15, 0.7
INK: Colour = (46, 44, 58)
PROGRESS = 0.775  # from top: below the words, above the subtitles
LONG = 90  # characters: from here on a text gets smaller letters


def shrink(c: Canvas) -> float:
    """How much smaller things are on a picture that is not wide: sizes are parts of its height."""
    return min(1.0, c.aspect / 1.6)


def accent_of(picture: Picture) -> Colour:
    return hue_colour((picture.seed % 97) / 97, 0.5, 0.46)


def paint_card(c: Canvas, picture: Picture) -> None:
    accent = accent_of(picture)
    paint_paper(c, accent)
    card = picture.card or Card(kind="words")
    glyphs = glyphs_of(picture)
    match card.kind:
        case "bars":
            _bars(c, card, accent)
        case "list" | "steps":
            _list(c, card, accent)
        case "number":
            _number(c, card, glyphs, accent)
        case "definition":
            _definition(c, card, glyphs, accent)
        case "date":
            _date(c, card, glyphs, accent)
        case "things" if glyphs:
            _things(c, card.title, glyphs, accent)
        case _:
            _words(c, card.title, accent)
    if card.step:
        paint_progress(c, *card.step, accent)


def glyphs_of(picture: Picture) -> list[str]:
    """The pictograms of a picture that are certain; on a card our own motifs are pictograms, too."""
    certain = [name for name in (*picture.pictograms, *picture.motifs) if name not in picture.uncertain]
    words = dict(picture.captions)
    named = [
        pictogram_of_motif(name, words.get(name, "")) or MOTIF_GLYPHS.get(name, name)
        if name in picture.motifs
        else name
        for name in certain
    ]
    return [name for name in dict.fromkeys(named) if has_glyph(name)]


def paint_paper(c: Canvas, accent: Colour) -> None:
    c.gradient([(0, mix(PAPER, accent, 0.1)), (0.7, PAPER), (1, mix(PAPER, accent, 0.2))])
    for k in range(5):  # quiet rings, so that the paper is no blank card
        r = 0.16 + 0.09 * k
        c.oval(0.95, 0.06, r, r, mix(PAPER, accent, 0.5), 16)
        c.oval(0.03, 0.98, r * 0.9, r * 0.9, scale_colour(accent, 0.8), 14)
    c.line([(0.05, 0.9), (0.95, 0.9)], mix(PAPER, accent, 0.35), 0.003)


def text_at(c: Canvas, x: float, y: float, words: str, size: float, colour: Colour, anchor: str = "la") -> None:
    c.pen = ImageDraw.Draw(c.image)
    c.pen.text(c.at(x, y), words, font=font(max(8, round(size * c.h))), fill=(*colour, 255), anchor=anchor)


def _lines(c: Canvas, words: str, width: float, size: float, most: int, height: float = 1.0) -> tuple[list[str], float]:
    """The words in lines of a width (of the canvas), in letters that become smaller until they fit."""
    while True:
        lines = wrap_lines(words, width * c.w, max(8, round(size * c.h)), most + 1)
        if (len(lines) <= most and len(lines) * size * 1.32 <= height) or size < 0.034:
            return lines[:most], size
        size *= 0.9


def block(
    c: Canvas,
    words: str,
    box: tuple[float, float, float, float],
    size: float,
    colour: Colour,
    most: int,
    *,
    centred: bool = False,
) -> None:
    """Words within left, top, right, bottom, in the middle from top to bottom; also from left to right if wanted."""
    left, top, right, bottom = box
    lines, size = _lines(c, words, right - left, size * (0.5 + 0.5 * shrink(c)), most + (c.aspect < 1.3), bottom - top)
    step = size * 1.32
    y = (top + bottom) / 2 - step * len(lines) / 2
    for line in lines:
        text_at(c, (left + right) / 2 if centred else left, y, line, size, colour, "ma" if centred else "la")
        y += step


def _words(c: Canvas, words: str, accent: Colour) -> None:
    c.box(LEFT - 0.02, TOP + 0.04, 0.012, BOTTOM - TOP - 0.08, accent, round_=0.006)
    block(c, words, (LEFT + 0.015, TOP, RIGHT, BOTTOM), 0.1, INK, 4 if len(words) < LONG else 6)


def _things(c: Canvas, words: str, glyphs: list[str], accent: Colour) -> None:
    """Pictograms, and below them the sentence: what they stand for is never in doubt."""
    shown = glyphs[:4]
    radius = (0.155, 0.145, 0.13, 0.115)[len(shown) - 1] * shrink(c)
    gap = 2.5 * radius / c.aspect
    for k, name in enumerate(shown):
        plate(c, name, 0.5 + (k - (len(shown) - 1) / 2) * gap, 0.29, radius, accent)
    block(c, words, (LEFT, 0.455, RIGHT, BOTTOM + 0.02), 0.066, INK, 3 if len(words) < LONG else 4, centred=True)


def paint_progress(c: Canvas, step: int, steps: int, accent: Colour) -> None:
    """Which step of how many: a row of dots, the present one large and numbered."""
    gap = min(0.075, 0.6 / steps)
    c.line(
        [(0.5 - gap * (steps - 1) / 2, PROGRESS), (0.5 + gap * (steps - 1) / 2, PROGRESS)],
        mix(PAPER, accent, 0.45),
        0.005,
    )
    for k in range(steps):
        x = 0.5 + (k - (steps - 1) / 2) * gap
        if k + 1 == step:
            c.oval(x, PROGRESS, 0.036, 0.036, accent)
            text_at(c, x, PROGRESS, str(step), 0.042, PAPER, "mm")
        else:
            c.oval(x, PROGRESS, 0.013, 0.013, accent if k < step else mix(PAPER, accent, 0.55))


def _definition(c: Canvas, card: Card, glyphs: list[str], accent: Colour) -> None:
    left = LEFT
    if glyphs:
        plate(c, glyphs[0], LEFT + 0.09, 0.42, 0.15 * shrink(c), accent)
        left = LEFT + 0.21
    block(
        c,
        card.title[:1].upper() + card.title[1:],
        (left, TOP + 0.02, RIGHT, 0.36),
        0.095,
        scale_colour(accent, 0.72),
        2,
    )
    c.line([(left, 0.375), (left + 0.2, 0.375)], accent, 0.006)
    block(c, card.items[0], (left, 0.39, RIGHT, BOTTOM), 0.07, INK, 4)


def _number(c: Canvas, card: Card, glyphs: list[str], accent: Colour) -> None:
    share = (
        card.values[0]
        if ("percent" in card.title or "per cent" in card.title or "%" in card.title or "百分" in card.title)
        else None
    )
    left = LEFT
    if share is not None and 0 <= share <= 100:
        _ring(c, LEFT + 0.1, 0.42, 0.17 * shrink(c), share / 100, accent)
        left = LEFT + 0.24
    elif glyphs:
        plate(c, glyphs[0], LEFT + 0.09, 0.42, 0.15 * shrink(c), accent)
        left = LEFT + 0.21
    block(c, card.title, (left, TOP, RIGHT, 0.43), 0.13, scale_colour(accent, 0.72), 2)
    block(c, card.items[0], (left, 0.44, RIGHT, BOTTOM), 0.066, INK, 3)


def _ring(c: Canvas, x: float, y: float, radius: float, share: float, accent: Colour) -> None:
    c.arc(x, y, radius, radius, 0, 360, mix(PAPER, accent, 0.28), radius * 0.34)
    c.arc(x, y, radius, radius, -90, -90 + 360 * share, accent, radius * 0.34)
    text_at(c, x, y, f"{round(share * 100, 1):g}%", radius * 0.5, INK, "mm")


def _date(c: Canvas, card: Card, glyphs: list[str], accent: Colour) -> None:
    c.line([(0.08, 0.5), (0.92, 0.5)], mix(PAPER, INK, 0.5), 0.006)
    for k in range(9):
        x = 0.1 + 0.1 * k
        c.line([(x, 0.487), (x, 0.513)], mix(PAPER, INK, 0.5), 0.004)
    c.oval(0.3, 0.5, 0.022, 0.022, accent)
    text_at(c, 0.3, 0.44, card.title, 0.15 * shrink(c), scale_colour(accent, 0.72), "ms")
    if glyphs:
        plate(c, glyphs[0], 0.7, 0.32, 0.13 * shrink(c), accent)
    block(c, card.items[0], (LEFT, 0.54, RIGHT, BOTTOM + 0.04), 0.048, INK, 3)


def _bars(c: Canvas, card: Card, accent: Colour) -> None:
    most = max(card.values) or 1.0
    rows = len(card.values)
    step = (BOTTOM - TOP) / rows
    for k, (item, value) in enumerate(zip(card.items, card.values, strict=True)):
        label, _, shown = item.partition("|")
        y = TOP + step * k
        text_at(c, LEFT, y + step * 0.06, label[:1].upper() + label[1:], 0.05 * shrink(c), INK)
        length = max(0.012, (RIGHT - LEFT - 0.2) * value / most)
        tone = accent if value == most else mix(accent, PAPER, 0.45)
        c.box(LEFT, y + step * 0.42, length * c.aspect, step * 0.34, tone, round_=0.012)
        text_at(c, LEFT + length + 0.015, y + step * 0.59, shown, 0.046 * shrink(c), scale_colour(accent, 0.7), "lm")


def _list(c: Canvas, card: Card, accent: Colour) -> None:
    items = card.items[:6]
    columns = 1 if len(items) <= 3 else 2
    rows = math.ceil(len(items) / columns)
    step, wide = (BOTTOM - TOP) / rows, (RIGHT - LEFT) / columns
    radius = min(0.085, step * 0.4) * shrink(c)
    for k, item in enumerate(items):
        x, y = LEFT + wide * (k // rows), TOP + step * (k % rows + 0.5)
        language = "zh" if any("\u4e00" <= letter <= "\u9fff" for letter in item) else "en"
        noun = item if language == "zh" else f"the {item}"
        words = pictogram_words(noun, language)
        known = [name for name, word in words.items() if has_glyph(name) and is_exact(word, noun, language)]
        if known:
            plate(c, known[0], x + radius / c.aspect, y, radius, accent)
        else:
            c.oval(x + radius / c.aspect, y, radius * 0.62, radius * 0.62, accent)
            text_at(c, x + radius / c.aspect, y, str(k + 1), radius * 0.75, PAPER, "mm")
        inner = (x + 2.5 * radius / c.aspect, y - step / 2, x + wide - 0.01, y + step / 2)
        block(c, item[:1].upper() + item[1:], inner, 0.058, INK, 2)
