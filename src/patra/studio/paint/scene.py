"""Turns a picture in words into the painted layers of its shot: what is behind, and what passes in front
(B6).
"""

import msgspec
import numpy as np
from PIL import Image

from patra.studio.paint import things
from patra.studio.paint.canvas import Canvas, noise, vignette
from patra.studio.paint.cards import paint_card
from patra.studio.paint.figures import HEIGHT, YOUNG, Look, animal, person, umbrella
from patra.studio.paint.inserts import paint_insert
from patra.studio.paint.pages import PAGES, paint_page
from patra.studio.paint.palette import Colour, Palette, mix, palette_for, scale_colour
from patra.studio.paint.plates import (
    MOST_PLATES,
    is_ship,
    paint_phrase,
    paint_plates,
    paint_sign,
    plates_of,
    thing_in_hand,
)
from patra.studio.paint.scenery.interiors import paint_interior
from patra.studio.paint.scenery.places import SNOW, paint_place
from patra.studio.script.scenes import INSIDE
from patra.studio.script.shots import Figure, Picture
from patra.studio.script.signs import is_room, set_of

ROOM = 1.2  # the painting is larger than the frame, so that the camera can move
WIDE = 16 / 9
PAINTER_VERSION = "painter-9"
BRIDGES = {"river": 0.56, "mountain": 0.67}  # where the deck is highest
EVERYBODY = ("man", "woman", "old", "child")  # a crowd of whom nothing is said
MANY = 11
WET = frozenset({"sea", "lake", "river", "harbour", "island"})


class Layers(msgspec.Struct, frozen=True, kw_only=True):
    """Two layers, ROOM times the frame: `back` is whole, `front` is its part that is not empty, masked, at a place."""

    back: Image.Image
    front: Image.Image | None
    mask: Image.Image | None
    front_left: int = 0
    front_top: int = 0
    palette: Palette
    mouths: dict[str, tuple[float, float, float, Colour]] = {}  # in front, by name: pixels of the painting, skin


def paint(picture: Picture, width: int, height: int, smooth: float = 1.6) -> Layers:
    """Paint a shot for frames of this size. The same picture gives the same pixels."""
    w, h = round(width * ROOM), round(height * ROOM)
    palette = palette_for(picture.time, picture.weather, picture.mood)
    wide = picture.framing == "card" or w >= 0.98 * h * WIDE
    full = w if wide else round(h * WIDE)  # a square shows the middle of a wide scene
    back = Canvas(round(full * smooth), round(h * smooth), palette, picture.seed)
    front = Canvas(round(full * smooth), round(h * smooth), palette, picture.seed + 1)
    inside = picture.place in INSIDE or is_room(picture.sign)
    placed = bool(picture.place or set_of(picture.sign))
    if picture.framing == "card":
        paged = picture.card is not None and picture.card.kind in PAGES
        paint_page(back, front, picture) if paged else paint_card(back, picture)
    elif picture.framing == "insert":
        paint_insert(back, picture)
    else:
        plain = msgspec.structs.replace(picture, motifs=tuple(m for m in picture.motifs if m not in picture.spoken))
        if placed:
            paint_interior(back, plain) if inside else paint_place(back, plain)
        else:
            _nowhere(back)
        if picture.framing == "medium":
            _soften(back)
        _people(back, front, plain, inside=inside, spread=1.0 if full == w else 0.66)
        _foreground(front, plain, inside=inside)
    if picture.weather == "fog" and not inside and placed and picture.framing != "card":
        _fog(back, picture)
    if picture.view and picture.framing == "wide" and not picture.crowd:
        for canvas in (back, front):
            canvas.show(_nearer(canvas.image, picture.view))
    if picture.framing in {"wide", "medium"}:  # above whatever part is seen
        over = back if picture.framing == "wide" else front
        paint_plates(over, picture, 0.82 if full == w else 0.64)
        paint_sign(over, picture, 0.14 if full == w else 0.33)
        paint_phrase(over, picture, 0.14 if full == w else 0.27)
    squeezed = full - w
    mouths = {
        name: (x * full - squeezed / 2, y * h, r * h, skin)
        for name, (x, y, r, skin) in front.mouths.items()
        if picture.framing == "medium" or (picture.card is not None and picture.card.kind == "quote")
    }
    if full > w:
        for canvas in (back, front):
            left = (canvas.image.width - round(w * smooth)) // 2
            canvas.image = canvas.image.crop((left, 0, left + round(w * smooth), canvas.image.height))
    dark = 0.1 if picture.framing == "card" else 0.42 if palette.dark else 0.3
    shown = vignette(back.image.resize((w, h), Image.Resampling.LANCZOS), dark)
    layers = _layers(shown, front.image.resize((w, h), Image.Resampling.LANCZOS), palette)
    return msgspec.structs.replace(layers, mouths=mouths)


def _layers(back: Image.Image, front: Image.Image, palette: Palette) -> Layers:
    bounds = front.getchannel("A").getbbox()
    if bounds is None:
        return Layers(back=back, front=None, mask=None, palette=palette)
    left, top = max(0, bounds[0] - 2), max(0, bounds[1] - 2)
    part = front.crop((left, top, min(front.width, bounds[2] + 2), min(front.height, bounds[3] + 2)))
    return Layers(
        back=back,
        front=part.convert("RGB"),
        mask=part.getchannel("A"),
        front_left=left,
        front_top=top,
        palette=palette,
    )


def _nowhere(c: Canvas) -> None:
    """Behind people of whom nobody says where they are: a page with a painted sky and floor, no place."""
    p = c.palette
    page = mix((250, 243, 228), p.horizon, 0.25 if not p.dark else 0.45)
    c.gradient([(0, mix(page, p.middle, 0.18)), (0.72, page), (1, mix(page, p.near, 0.14))])
    for r, share in ((0.62, 0.16), (0.52, 0.3), (0.42, 0.48)):  # washes of the hour behind them
        c.oval(0.42, 0.5, r * 1.22, r, mix(page, p.middle, share))
    c.oval(0.42, 0.56, 0.4, 0.3, mix(page, p.horizon, 0.7))
    floor = mix(page, p.near, 0.2)
    line = [(k / 40, 0.86 + 0.012 * np.sin(k * 0.45) + 0.004 * np.sin(k * 1.7)) for k in range(41)]
    c.poly([*line, (1, 1.01), (0, 1.01)], floor)
    for k in range(30):  # the brush is seen
        x, y = c.rng.random(), 0.89 + 0.1 * c.rng.random()
        c.line(
            [(x, y), (x + 0.04 + 0.05 * c.rng.random(), y - 0.004)], mix(floor, p.near if k % 2 else page, 0.22), 0.004
        )
    for _ in range(26):
        r = 0.003 + 0.007 * c.rng.random()
        c.oval(c.rng.random(), 0.8 * c.rng.random(), r, r, mix(page, p.middle, 0.45), 120)


def _nearer(image: Image.Image, view: int) -> Image.Image:
    """A part of the painting, seen larger: the left or the right of it."""
    width, height = round(image.width * 0.72), round(image.height * 0.72)
    left = round((0.02 if view == 1 else 0.26) * image.width)
    top = round(0.2 * image.height)
    return image.crop((left, top, left + width, top + height)).resize(image.size, Image.Resampling.LANCZOS)


def _soften(c: Canvas) -> None:
    """What is behind a person is a little out of focus."""
    c.blur(0.0035)


def _people(back: Canvas, front: Canvas, picture: Picture, *, inside: bool, spread: float) -> None:
    rng, motifs = back.rng, picture.motifs
    figures = picture.figures
    if picture.framing == "medium" and figures:
        if picture.crowd:
            _crowd(back, 0.9, 0.4, picture)
        if picture.place in WET and "boat" in motifs and not is_ship(picture):
            _rowing(front, figures, 0.5, 0.9, 0.62, 1.0)
        else:
            _standing(front, picture, spread)
        for kind in ("cat", "dog"):
            if kind in motifs:
                animal(front, kind, 0.66, 1.0, 0.26, 1.0, -1)
        return
    if (
        figures
        and picture.place in WET - {"harbour"}
        and not {"bridge"} & set(motifs)
        and "boat" in motifs
        and not is_ship(picture)
    ):
        _rowing(back, figures, 0.46, 0.8, 0.26, 0.85)
        return
    ground = 0.9 if inside else 0.86
    for number, figure in enumerate(figures):
        x = 0.42 + 0.11 * number + 0.03 * rng.random() if not inside else 0.36 + 0.12 * number
        size = 0.42 if inside else 0.2
        if (deck := BRIDGES.get(picture.place)) and "bridge" in motifs:
            person(back, figure, 0.5 + 0.05 * number, deck, 0.16, 0.75, pose="sit")
            continue
        if picture.place in WET and not inside:
            if picture.place == "harbour":  # on the planks, one behind the other
                x, ground = 0.565 + 0.05 * number, 0.87 - 0.054 * number
            else:
                x, ground = 0.4 + 0.06 * number, 0.93
        person(
            back,
            figure,
            x,
            ground,
            size,
            0.9,
            pose="walk" if picture.place in {"street", "road"} else "stand",
            facing=1 if number % 2 == 0 else -1,
        )
        if "umbrella" in motifs and number == 0:
            umbrella(back, x, ground - size * HEIGHT.get(figure.kind, 1) * 1.06, size * 0.75, (206, 120, 60))
    if picture.crowd and picture.place in WET:  # nobody stands on the water
        _bank(back, picture, 0.82)
        _crowd(back, 0.84, 0.14, picture)
    elif picture.crowd:
        near = inside or not (picture.place or picture.sign)
        _crowd(back, 0.82 if near else 0.78, 0.32 if near else 0.14, picture)
    for kind, size in (("cat", 0.07), ("dog", 0.09), ("horse", 0.16)):
        if kind in motifs:
            animal(back, kind, 0.62, ground, size * (2 if inside else 1), 0.9, -1)


def _crowd(c: Canvas, ground: float, size: float, picture: Picture) -> None:
    """Many people, the nearer the larger; side by side where the text counts them."""
    kinds, count = picture.crowd_kinds or EVERYBODY, picture.crowd_count
    for k in range(count or MANY):
        x, near = 0.2 + 0.6 * c.rng.random(), 0.1 * c.rng.random()
        if count:
            x, near = 0.24 + 0.52 * (k + 0.5) / count, 0.3 * near
        facing = c.rng.choice((-1, 1))
        figure = Figure(kind=kinds[k % len(kinds)], name=f"crowd {k}")
        person(c, figure, x, ground + near, size + 0.5 * near, 0.8, facing=facing)


def _rowing(c: Canvas, figures: tuple[Figure, ...], x: float, y: float, s: float, near: float) -> None:
    """People in a rowing boat: its far side, they, its near side."""
    a = c.aspect
    things.rowboat(c, x, y, s, near)
    for number, figure in enumerate(figures):
        place = x + (-0.172, 0.172, 0.0)[number] * s / a
        own = 0.97 * s * (1.18 if figure.kind in YOUNG else 1.0)
        person(c, figure, place, y + 0.113 * s, own, near, pose="sit", facing=1 if number % 2 == 0 else -1)
    hull = mix(c.palette.land(near), (110, 64, 40), 0.3)
    top, bottom = y - 0.161 * s, y + 0.097 * s
    c.poly(
        [
            (x - 0.726 * s / a, top),
            (x + 0.726 * s / a, top),
            (x + 0.516 * s / a, bottom),
            (x - 0.484 * s / a, bottom),
        ],
        hull,
    )
    rim = [(x - 0.726 * s / a, top + 0.003 * s), (x + 0.726 * s / a, top + 0.003 * s)]
    c.line(rim, mix(hull, c.palette.light, 0.35), 0.0194 * s)


def _standing(c: Canvas, picture: Picture, spread: float) -> None:
    """People near enough to see their faces; nearer to each other where the picture is narrow."""
    if picture.place in WET:  # nobody stands on the water
        _bank(c, picture)
    figures = picture.figures
    many = len(plates_of(picture)[:MOST_PLATES]) > 1  # room for the plates
    near, far = (((0.3,), (0.22, 0.44), (0.18, 0.35, 0.52)), ((0.36,), (0.3, 0.56), (0.26, 0.48, 0.68)))
    places = (near if many else far)[len(figures) - 1]
    for number, (figure, place) in enumerate(zip(figures, places, strict=False)):
        x = 0.5 + (place - 0.5) * spread
        facing = 1 if number % 2 == 0 else -1
        holds = number == 0 and bool(thing_in_hand(picture) or "cup" in picture.motifs)
        own = 0.82 * (1.18 if figure.kind in YOUNG else 1.0)
        feet = 0.3 + own * HEIGHT.get(figure.kind, 1.0)
        person(c, figure, x, feet, own, 1.0, pose="hold" if holds else "stand", facing=facing)
        if holds:
            _draw_thing_in_hand(c, thing_in_hand(picture), figure, x, feet, own, facing)


def _bank(c: Canvas, picture: Picture, top: float = 0.9) -> None:
    p = c.palette
    tone = scale_colour(p.land(0.95), 0.9)
    if picture.place == "harbour":
        tone = mix(tone, (104, 78, 60), 0.35)
    elif picture.place in {"sea", "island"}:
        tone = mix(tone, (190, 164, 128), 0.35 if not p.dark else 0.1)
    line = [(k / 30, top + 0.012 * np.sin(k * 0.5) + 0.004 * np.sin(k * 1.9)) for k in range(31)]
    c.poly([*line, (1, 1.01), (0, 1.01)], tone)
    c.line(line, mix(tone, p.light, 0.3), 0.006)


def _draw_thing_in_hand(c: Canvas, motif: str, figure: Figure, x: float, base: float, s: float, facing: int) -> None:
    """What a person holds before them: a letter, a lantern, an umbrella."""
    h = s * HEIGHT.get(figure.kind, 1.0)
    hx, hy = x + facing * 0.2 * h / c.aspect, base - 0.62 * h
    dim = 0.3 if c.palette.dark else 0.05
    if motif == "umbrella":
        umbrella(c, hx - facing * 0.06, hy - 0.5 * h, 0.62 * h, (206, 120, 60))
    elif motif == "lamp":
        c.glow(hx, hy + 0.1 * h, 0.4 * h, c.palette.window, 0.7)
        things.lantern(c, hx, hy + 0.02 * h, 0.11 * h)
    elif motif == "paperboat":
        white, a = mix((250, 248, 240), c.palette.near, dim), c.aspect
        c.poly(
            [
                (hx - 0.1 * h / a, hy - 0.05 * h),
                (hx + 0.1 * h / a, hy - 0.05 * h),
                (hx + 0.06 * h / a, hy + 0.01 * h),
                (hx - 0.06 * h / a, hy + 0.01 * h),
            ],
            white,
        )
        c.poly(
            [(hx - 0.045 * h / a, hy - 0.05 * h), (hx, hy - 0.12 * h), (hx + 0.045 * h / a, hy - 0.05 * h)],
            scale_colour(white, 0.92),
        )
    elif motif:
        white, a = mix((248, 242, 226), c.palette.near, dim), c.aspect
        c.poly(
            [
                (hx - 0.05 * h / a, hy - 0.1 * h),
                (hx + 0.07 * h / a, hy - 0.08 * h),
                (hx + 0.06 * h / a, hy + 0.05 * h),
                (hx - 0.06 * h / a, hy + 0.03 * h),
            ],
            white,
        )
        for k in range(4):
            c.line(
                [
                    (hx - 0.035 * h / a, hy - 0.065 * h + 0.025 * k * h),
                    (hx + 0.045 * h / a, hy - 0.05 * h + 0.025 * k * h),
                ],
                scale_colour(white, 0.66),
                0.006 * h,
            )
    del figure


def _foreground(c: Canvas, picture: Picture, *, inside: bool) -> None:
    """Something near and dark that passes faster than the rest."""
    p = c.palette
    ink = scale_colour(mix(p.near, p.land(0.9), 0.4), 0.75)
    if inside:
        if picture.framing == "wide":
            c.poly([(0, 0), (0.035, 0), (0.028, 1), (0, 1)], scale_colour(mix((70, 44, 32), p.near, 0.5), 0.7))
        return
    if picture.framing == "medium":
        return
    blossom = "blossom" in picture.motifs
    if picture.place in {"forest", "garden", "mountain", "lake", "temple"} or blossom:
        _bough(
            c,
            ink,
            mix(ink, (244, 176, 194), 0.78 if not p.dark else 0.4)
            if blossom
            else mix(ink, (206, 116, 46), 0.6)
            if "leaf" in picture.motifs
            else mix(ink, SNOW, 0.8)
            if picture.weather == "snow"
            else mix(ink, (74, 112, 70), 0.3),
        )
    if picture.place in {"field", "garden", "mountain", "road", "village", "island", "forest", "temple"}:
        tone = (
            mix(ink, SNOW, 0.55) if picture.weather == "snow" else mix(ink, (70, 110, 62), 0.25 if not p.dark else 0.05)
        )
        things.grass(c, tone, 260)
    if picture.place in {"river", "lake"}:
        for k in range(46):  # reeds
            x = (0.0 if k % 2 else 0.82) + 0.18 * c.rng.random()
            tall = 0.12 + 0.17 * c.rng.random()
            lean = (c.rng.random() - 0.4) * 0.03
            c.line([(x, 1.01), (x + lean, 1 - tall)], scale_colour(ink, 1.15), 0.005)
            c.line([(x + lean, 1 - tall), (x + lean * 1.15, 1 - tall - 0.05)], mix(ink, (140, 100, 60), 0.5), 0.012)
    if picture.place == "harbour":
        for x in (0.1, 0.135):
            c.box(x, 0.84, 0.05, 0.2, ink, round_=0.012)
        c.line([(0.13, 0.88), (0.3, 0.96), (0.5, 0.985), (0.8, 1.01)], scale_colour(ink, 1.3), 0.012)
    if "fence" in picture.motifs:
        for k in range(14):
            c.box(0.02 + 0.07 * k, 0.86, 0.03, 0.16, scale_colour(ink, 1.1))
        c.box(0, 0.9, c.aspect, 0.02, ink)


def _bough(c: Canvas, wood: tuple[int, int, int], leaf: tuple[int, int, int]) -> None:
    """A branch that hangs into the picture from above."""
    rng = c.rng
    points = [(-0.02 + 0.34 * k / 9, 0.02 + 0.13 * (k / 9) ** 1.5 + 0.008 * rng.random()) for k in range(10)]
    c.line(points, wood, 0.016)
    for x, y in points[1:]:
        for _ in range(9):
            dx, dy, r = (rng.random() - 0.5) * 0.075, (rng.random() - 0.35) * 0.13, 0.008 + 0.011 * rng.random()
            c.oval(x + dx, y + dy, r * 1.3, r, scale_colour(leaf, 0.85 + 0.3 * rng.random()))


def _fog(c: Canvas, picture: Picture) -> None:
    p = c.palette
    rows = np.linspace(0, 1, 90, dtype=np.float32)[:, None]
    cloud = noise(160, 90, picture.seed, scale=3, octaves=4, stretch=3)
    band = np.exp(-(((rows - 0.58) / 0.26) ** 2)) * (0.35 + 0.6 * cloud)
    c.veil(band * 0.78, mix(p.horizon, p.middle, 0.35))


__all__ = ["PAINTER_VERSION", "ROOM", "Layers", "Look", "paint"]
