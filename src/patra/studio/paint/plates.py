"""Draws a plate with pictogram and word for each thing that a scene does not draw, and the sign of its place (B6)."""

from PIL import ImageDraw

from patra.studio.paint.canvas import Canvas
from patra.studio.paint.cards import INK, accent_of
from patra.studio.paint.lettering import font, wrap_lines
from patra.studio.paint.palette import Colour, mix, scale_colour
from patra.studio.paint.pictogram import MOTIF_GLYPHS, PAPER, has_glyph, sticker
from patra.studio.script.lexicon import INSIDE
from patra.studio.script.shots import Picture
from patra.studio.script.signs import OUTDOORS

MOST_PLATES = 6
WIDE_LEFT = 0.2
NARROW = 0.7  # the right edge of a square
WATERS = frozenset({"sea", "lake", "river", "island", "harbour"})
_PLACES: dict[str, frozenset[str]] = {
    "lighthouse": frozenset({"sea", "harbour", "island", "village"}),
    "boat": WATERS,
    "house": frozenset({"village", "mountain", "street", "city"}),
    "tree": frozenset({"forest", "field", "garden", "village", "mountain", "road", "lake", "river", "temple"}),
    "flower": frozenset({"field", "garden"}),
    "path": frozenset({"field", "mountain", "road", "temple", "garden", "village", "street"}),
    "lamp": frozenset({"street", "room", "library", "workshop", "shop"}),
    "bridge": frozenset({"river", "mountain"}),
    "train": frozenset({"station"}),
    "window": INSIDE | {"village", "street", "city"},
    "candle": INSIDE,
    "fire": INSIDE,
    "book": frozenset({"library"}),
    "cup": frozenset({"kitchen", "room"}),
}
"""Where a painter draws a motif."""

_OUTSIDE = frozenset({"bird", "kite", "blossom", "leaf"})  # of any place under the sky
_SKY = {"moon": ("night",), "star": ("night",), "sun": ("dawn", "morning", "day", "dusk")}
_HELD = ("umbrella", "lamp", "paperboat", "letter", "book")  # by the first person, one of them
_LANTERNS = frozenset(["lantern", "lanterns", "提灯", "灯笼", "油灯"])


_SHIPS = frozenset(
    ["ship", "ships", "ferry", "ferries", "vessel", "steamer", "mast", "帆船", "轮船", "货船", "渡轮", "大船", "渡船"]
)


def is_ship(picture: Picture) -> bool:
    """Whether the boat of a picture is one that nobody rows."""
    return dict(picture.captions).get("boat", "") in _SHIPS


def thing_in_hand(picture: Picture) -> str:
    """What the first person of a picture holds, if anything: no lamp but a lantern."""
    lantern = dict(picture.captions).get("lamp", "lantern") in _LANTERNS
    return next(
        (one for one in _HELD if one in picture.motifs and one not in picture.spoken and (one != "lamp" or lantern)), ""
    )


def undrawn(picture: Picture) -> tuple[str, ...]:
    """The motifs of a picture that are not seen in it, in their order."""
    return tuple(motif for motif in picture.motifs if not is_drawn(motif, picture))


def is_drawn(motif: str, picture: Picture) -> bool:
    """Whether the painter draws a motif in a picture that is a scene."""
    if motif in picture.spoken:
        return False
    medium = picture.framing == "medium" and bool(picture.figures)
    afloat = picture.place in WATERS and "boat" in picture.motifs
    if medium and not afloat and motif == thing_in_hand(picture):
        return True
    if motif in {"cat", "dog"}:
        return not afloat
    if motif == "horse":
        return not medium and not afloat
    if motif == "umbrella":
        return bool(picture.figures) and not medium and picture.place not in WATERS
    if motif == "fence":
        return not medium and bool(picture.place) and picture.place not in INSIDE
    if picture.place in INSIDE or not picture.place:
        return picture.place in _PLACES.get(motif, ())
    if motif in _SKY:
        return picture.time in _SKY[motif] and picture.weather in {"clear", "wind"}
    return motif in _OUTSIDE or picture.place in _PLACES.get(motif, ())


def _certain(thing: str, glyph: str, picture: Picture) -> str:
    """The pictogram of a thing; none where it may show another one."""
    return "" if thing in picture.uncertain else glyph


def plates_of(picture: Picture) -> list[tuple[str, str]]:
    """What is shown on plates beside a scene: the pictogram, or nothing, and the text's own word for each thing."""
    words = dict(picture.captions)
    motifs = [
        (_certain(motif, MOTIF_GLYPHS.get(motif, ""), picture), words.get(motif, "")) for motif in undrawn(picture)
    ]
    named = [(_certain(name, name, picture), words.get(name, "")) for name in picture.pictograms]
    shown = [(name if name and has_glyph(name) else "", word) for name, word in (*named, *motifs)]
    shown += [("", word) for word in picture.labels]
    found: dict[str, tuple[str, str]] = {}
    for name, word in shown:
        if (name or word) and not (word and word == picture.sign):
            found.setdefault(word.lower() or name, (name, word))
    return list(found.values())


def paint_plates(c: Canvas, picture: Picture, right: float) -> None:
    """The plates in the upper right, in rows of at most three; nearer to the middle where the picture is narrow."""
    beside = right < NARROW and picture.framing == "medium" and bool(picture.figures)  # of a face: one column
    shown = plates_of(picture)[: (2 if picture.sign or picture.phrase else 3) if beside else MOST_PLATES]
    top = 0.38 if right < NARROW and picture.sign else 0.24  # below the sign where there is no room beside it
    columns = 1 if beside else min(len(shown), 2 if len(shown) <= 4 else 3)
    radius = 0.088 if len(shown) <= 4 else 0.074
    for k, (name, word) in enumerate(shown):
        row, column = divmod(k, columns)
        x, y = right - (columns - 1 - column) * 2.75 * radius / c.aspect, top + row * 3.05 * radius
        if name:
            sticker(c, name, x, y, radius, accent_of(picture))
            _letter_plate(c, word, x, y + radius * 1.28, radius * 0.42, 2.7 * radius)
        else:
            _tag(c, word, x, y, radius, accent_of(picture))


def paint_sign(c: Canvas, picture: Picture, left: float) -> None:
    """The word of a place whose drawing does not say which one it is, on a board in the upper left."""
    if not picture.sign or picture.sign in OUTDOORS.values():
        return
    words, size = picture.sign.replace("-", " ").capitalize(), 0.058
    face = font(max(8, round(size * c.h)))
    wide = face.getlength(words) / c.h + size * 1.1  # parts of the height, as all sizes
    x, y, accent = left, 0.17, accent_of(picture)
    c.box(x - 0.004, y + 0.008, wide, size * 1.9, (16, 12, 18), 70, round_=0.014)
    c.box(x, y, wide, size * 1.9, scale_colour(accent, 0.75), round_=0.014)
    c.box(x + 0.006 / c.aspect, y + 0.006, wide - 0.012, size * 1.9 - 0.012, PAPER, round_=0.01)
    _write(c, words, x + wide / 2 / c.aspect, y + size * 0.95, size, mix(scale_colour(accent, 0.55), INK, 0.4))


def _tag(c: Canvas, word: str, x: float, y: float, radius: float, accent: Colour) -> None:
    """A label with a word alone, where there is no pictogram."""
    size = radius * 0.5
    longest = max(word.split() or [""], key=len)
    while font(max(8, round(size * c.h))).getlength(longest) > 2.2 * radius * c.h and size > radius * 0.28:
        size *= 0.93
    lines = wrap_lines(word, 2.2 * radius * c.h, max(8, round(size * c.h)), 2)
    tall = size * 1.3 * len(lines) + size * 0.7
    wide = 2.45 * radius
    c.box(x - wide / 2 / c.aspect, y - tall / 2 + 0.008, wide, tall, (16, 12, 18), 70, round_=0.02)
    c.box(x - wide / 2 / c.aspect, y - tall / 2, wide, tall, scale_colour(accent, 0.9), round_=0.02)
    c.box(x - (wide / 2 - 0.006) / c.aspect, y - tall / 2 + 0.006, wide - 0.012, tall - 0.012, PAPER, round_=0.016)
    for k, line in enumerate(lines):
        _write(c, line, x, y + (k - (len(lines) - 1) / 2) * size * 1.3, size, mix(scale_colour(accent, 0.55), INK, 0.4))


def _letter_plate(c: Canvas, word: str, x: float, y: float, size: float, wide: float) -> None:
    """The word below a plate, on a strip that keeps it legible on any ground."""
    if not word:
        return
    line = wrap_lines(word, wide * c.h, max(8, round(size * c.h)), 1)[0]
    length = font(max(8, round(size * c.h))).getlength(line) / c.h + size
    c.box(x - length / 2 / c.aspect, y - size * 0.75, length, size * 1.5, PAPER, 215, round_=size * 0.5)
    _write(c, line, x, y, size, INK)


def _write(c: Canvas, words: str, x: float, y: float, size: float, colour: Colour) -> None:
    c.pen = ImageDraw.Draw(c.image)
    c.pen.text(c.at(x, y), words, font=font(max(8, round(size * c.h))), fill=(*colour, 255), anchor="mm")


def paint_phrase(c: Canvas, picture: Picture, left: float) -> None:
    """A clause of which nothing is drawn, on a strip above the subtitles; beside the person where there is one."""
    if not picture.phrase:
        return
    size, accent = 0.05, accent_of(picture)
    lines = wrap_lines(picture.phrase, (0.9 - 2 * left) * c.w, max(8, round(size * c.h)), 2)
    face = font(max(8, round(size * c.h)))
    wide = max(face.getlength(line) for line in lines) / c.h + size * 1.4
    tall = size * (0.6 + 1.3 * len(lines))
    narrow = left > WIDE_LEFT
    if picture.framing == "medium" and len(picture.figures) < 3 and not narrow:
        left = max(left, 1 - left - wide / c.aspect)
    top = 0.91 - tall if narrow and len(plates_of(picture)) > 1 else 0.755 - tall  # below the plates of a square
    c.box(left, top, wide, tall, PAPER, 225, round_=0.012)
    c.box(left, top, 0.012, tall, scale_colour(accent, 0.9), round_=0.004)
    for k, line in enumerate(lines):
        _write(c, line, left + wide / 2 / c.aspect, top + size * (0.95 + 1.3 * k), size, INK)
