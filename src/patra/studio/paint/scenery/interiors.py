"""Paints a room with its window, its furniture and its light (B6)."""

import math

from PIL import Image

from patra.studio.paint.canvas import Canvas
from patra.studio.paint.palette import Colour, mix, scale_colour
from patra.studio.paint.scenery.light import FLOOR, WOOD, light_colour
from patra.studio.paint.scenery.places import paint_place
from patra.studio.paint.scenery.rooms import ROOMS
from patra.studio.script.shots import Picture
from patra.studio.script.signs import set_of

_WALLS: dict[str, Colour] = {
    "room": (196, 168, 136),
    "kitchen": (206, 178, 140),
    "library": (130, 96, 74),
    "workshop": (150, 118, 88),
    "hall": (156, 124, 108),
    "shop": (176, 146, 112),
}


def paint_interior(c: Canvas, picture: Picture) -> None:
    furnish, plain, windowed = ROOMS.get(set_of(picture.sign), (None, _WALLS.get(picture.place, (190, 160, 130)), True))
    wall, wood = light_colour(c, plain), light_colour(c, WOOD)
    c.gradient([(0, scale_colour(wall, 0.72)), (0.7, wall), (1, scale_colour(wall, 0.86))], 0, FLOOR)
    for k in range(26):  # boards, just seen
        x = k / 26
        c.line([(x, 0), (x, FLOOR)], scale_colour(wall, 0.93), 0.002)
    c.gradient([(0, scale_colour(wood, 0.9)), (1, scale_colour(wood, 0.62))], FLOOR, 1)
    for k in range(15):
        x = (k - 7) / 7
        c.line([(0.5 + 0.52 * x, FLOOR), (0.5 + 1.25 * x, 1)], scale_colour(wood, 0.6), 0.003)
    c.box(0, FLOOR - 0.026, c.aspect, 0.032, scale_colour(wood, 0.75))
    if windowed:
        _window(c, picture, 0.17, 0.16, 0.36 * c.aspect * 0.62, 0.4, wood)
    if furnish is not None:
        furnish(c)
    else:
        _furnish(c, picture, wood)
    if "candle" in picture.motifs:
        candle(c, 0.46, 0.655, 0.09)
    if "fire" in picture.motifs and picture.place != "kitchen":
        _hearth(c, 0.86, wood)
    _light(c, picture, windowed=windowed)


def _furnish(c: Canvas, picture: Picture, wood: Colour) -> None:
    match picture.place:
        case "kitchen":
            _stove(c, wood)
            _shelf(c, 0.52, 0.2, 0.4, wood, pots=True)
            _table(c, 0.42, wood, cups=True)
        case "library":
            _books(c, 0.5, 0.06, 0.5, 0.68, wood)
            _table(c, 0.36, wood, lamp=True)
        case "workshop" | "shop":
            if "clock" in picture.motifs:
                _clocks(c, 0.52, 0.08, wood)
            else:
                _shelf(c, 0.52, 0.2, 0.4, wood, pots=picture.place == "shop")
            _table(c, 0.5, wood, tools=True, lamp=True)
        case "hall":
            _hall(c, wood)
        case _:
            _books(c, 0.78, 0.2, 0.19, 0.54, wood)
            _wall_clock(c, 0.62, 0.24, 0.065, wood)
            _bed(c, wood) if "bed" in picture.motifs else _table(c, 0.5, wood, lamp=True, cups="cup" in picture.motifs)


def _window(c: Canvas, picture: Picture, x: float, y: float, w: float, h: float, wood: Colour) -> None:
    """The world outside in small: the same hour and weather."""
    width, height = max(8, round(w * c.h)), max(8, round(h * c.h))
    outside = Canvas(width, height, c.palette, c.seed)
    elsewhere = "village" if picture.place != "hall" else "mountain"
    paint_place(
        outside,
        Picture(
            place=elsewhere,
            time=picture.time,
            weather=picture.weather,
            mood=picture.mood,
            motifs=tuple(m for m in picture.motifs if m in {"moon", "sun", "blossom", "leaf"}),
            absent=picture.absent,
        ),
    )
    left, top = c.at(x, y)
    frame = scale_colour(wood, 0.8)
    c.box(x - 0.025 / c.aspect, y - 0.025, w + 0.05, h + 0.05, frame)
    c.image.paste(outside.image.resize((width, height), Image.Resampling.BILINEAR), (round(left), round(top)))
    for k in (1 / 3, 2 / 3):
        c.box(x + (w * k - 0.005) / c.aspect, y, 0.01, h, frame)
    c.box(x, y + h / 2 - 0.005, w, 0.01, frame)
    c.box(x - 0.05 / c.aspect, y + h + 0.015, w + 0.1, 0.024, mix(frame, c.palette.light, 0.2))
    curtain = light_colour(c, (168, 74, 66))
    for side in (-1, 1):
        edge = x - 0.03 / c.aspect if side < 0 else x + (w + 0.03) / c.aspect
        folds = [
            (
                edge + side * (-0.1 + 0.012 * math.sin(k * 1.1)) / c.aspect * (0.55 + 0.5 * (k / 12 - 0.6) ** 2 * 2),
                y - 0.05 + (h + 0.17) * k / 12,
            )
            for k in range(13)
        ]
        c.poly(
            [
                (edge + side * 0.055 / c.aspect, y - 0.05),
                (edge + side * 0.06 / c.aspect, y + h + 0.12),
                *reversed(folds),
            ],
            curtain,
        )
        for k in (0.0, 0.03):
            c.line(
                [(edge + side * k / c.aspect, y - 0.04), (edge + side * (k + 0.006) / c.aspect, y + h + 0.11)],
                scale_colour(curtain, 0.8),
                0.005,
            )
    c.box(x - 0.11 / c.aspect, y - 0.068, w + 0.22, 0.018, scale_colour(wood, 0.6), round_=0.008)


def _table(c: Canvas, x: float, wood: Colour, *, lamp: bool = False, cups: bool = False, tools: bool = False) -> None:
    a, top = c.aspect, FLOOR - 0.04
    w = 0.62
    board = mix(wood, c.palette.light, 0.12)
    for leg in (0.05, w - 0.09):
        c.box(x + leg / a, top, 0.04, 0.25, scale_colour(wood, 0.7))
    c.poly(
        [
            (x - 0.03 / a, top + 0.03),
            (x + 0.06 / a, top - 0.05),
            (x + (w - 0.06) / a, top - 0.05),
            (x + (w + 0.03) / a, top + 0.03),
        ],
        board,
    )
    c.box(x - 0.03 / a, top + 0.03, w + 0.06, 0.024, scale_colour(board, 0.72))
    if cups:
        cup(c, x + 0.2 / a, top - 0.012, 0.06)
        cup(c, x + 0.34 / a, top - 0.0, 0.06)
    if tools:
        for k in range(5):
            c.line(
                [(x + (0.12 + 0.07 * k) / a, top + 0.012), (x + (0.16 + 0.07 * k) / a, top - 0.022)],
                (150, 150, 156),
                0.008,
            )
        c.oval(x + 0.2 / a, top - 0.015, 0.035, 0.014, (206, 170, 90))
        c.oval(x + 0.2 / a, top - 0.018, 0.027, 0.01, (244, 240, 228))
    if lamp:
        c.line([(x + 0.5 / a, top - 0.02), (x + 0.5 / a, top - 0.15)], (150, 120, 60), 0.012)
        c.oval(x + 0.5 / a, top - 0.015, 0.045, 0.012, (150, 120, 60))
        c.poly(
            [
                (x + 0.43 / a, top - 0.14),
                (x + 0.46 / a, top - 0.23),
                (x + 0.54 / a, top - 0.23),
                (x + 0.57 / a, top - 0.14),
            ],
            (250, 214, 150) if c.palette.dark else (226, 204, 170),
        )
    chair = scale_colour(wood, 0.6)
    c.box(x - 0.19 / a, top + 0.04, 0.16, 0.02, chair)
    c.box(x - 0.2 / a, top - 0.16, 0.02, 0.38, chair)
    c.box(x - 0.06 / a, top + 0.05, 0.02, 0.17, chair)


def cup(c: Canvas, x: float, y: float, s: float) -> None:
    a, china = c.aspect, mix((236, 232, 224), c.palette.near, 0.3 if c.palette.dark else 0.05)
    c.oval(x, y, 0.62 * s, 0.16 * s, scale_colour(china, 0.86))
    c.poly(
        [
            (x - 0.4 * s / a, y - 0.62 * s),
            (x + 0.4 * s / a, y - 0.62 * s),
            (x + 0.28 * s / a, y),
            (x - 0.28 * s / a, y),
        ],
        china,
    )
    c.oval(x, y - 0.62 * s, 0.4 * s, 0.11 * s, (126, 80, 48))
    c.arc(x + 0.42 * s / a, y - 0.36 * s, 0.2 * s, 0.2 * s, -80, 110, china, 0.09 * s)


def candle(c: Canvas, x: float, y: float, s: float) -> None:
    c.box(x - 0.1 * s / c.aspect, y - s, 0.2 * s, s, (238, 226, 200))
    c.glow(x, y - 1.2 * s, 3.2 * s, (255, 196, 110), 0.8)
    c.oval(x, y - 1.22 * s, 0.09 * s, 0.2 * s, (255, 226, 150))


def _shelf(c: Canvas, x: float, y: float, w: float, wood: Colour, *, pots: bool) -> None:
    a = c.aspect
    for row in (0.0, 0.16):
        c.box(x, y + row + 0.1, w * a, 0.018, scale_colour(wood, 0.8))
        if pots:
            for k in range(7):
                tone = light_colour(
                    c, ((188, 104, 70), (92, 116, 120), (206, 188, 150), (150, 70, 60))[(k + round(row * 10)) % 4]
                )
                px, tall = x + (0.05 + 0.095 * k) / a, 0.05 + 0.03 * ((k * 7) % 3) / 2
                c.box(px, y + row + 0.1 - tall, 0.055, tall, tone, round_=0.012)
                c.box(px + 0.008 / a, y + row + 0.092 - tall, 0.039, 0.012, scale_colour(tone, 0.8))


def _stove(c: Canvas, wood: Colour) -> None:
    a = c.aspect
    brick = light_colour(c, (150, 92, 72))
    c.box(0.79, 0.1, 0.2, 0.64, scale_colour(brick, 0.82))
    c.box(0.74, 0.46, 0.4, 0.28, brick)
    for row in range(6):
        for k in range(6):
            c.box(
                0.742 + (0.066 * k + 0.03 * (row % 2)) / a,
                0.472 + 0.045 * row,
                0.06,
                0.038,
                scale_colour(brick, 0.92 + 0.05 * ((row * k) % 3)),
            )
    c.box(0.8, 0.56, 0.2, 0.14, (26, 16, 14), round_=0.05)
    _flames(c, 0.8 + 0.1 / a, 0.69, 0.11)
    iron = (46, 44, 48)
    c.box(0.77, 0.43, 0.3, 0.03, iron)
    c.oval(0.81, 0.4, 0.055, 0.045, iron)
    c.line([(0.84, 0.385), (0.862, 0.36)], iron, 0.014)
    del wood


def _flames(c: Canvas, x: float, y: float, s: float) -> None:
    a = c.aspect
    c.glow(x, y - 0.4 * s, 3.6 * s, (255, 140, 60), 0.85)
    for dx, tall, tone in (
        (-0.35, 0.8, (228, 92, 40)),
        (0.3, 0.9, (236, 110, 44)),
        (0.0, 1.15, (246, 150, 60)),
        (-0.1, 0.7, (255, 206, 110)),
        (0.14, 0.55, (255, 232, 160)),
    ):
        c.poly(
            [
                (x + (dx - 0.22) * s / a, y),
                (x + (dx - 0.12) * s / a, y - 0.45 * tall * s),
                (x + dx * s / a, y - tall * s),
                (x + (dx + 0.16) * s / a, y - 0.4 * tall * s),
                (x + (dx + 0.24) * s / a, y),
            ],
            tone,
        )


def _hearth(c: Canvas, x: float, wood: Colour) -> None:
    stone = light_colour(c, (140, 130, 124))
    c.box(x - 0.13 / c.aspect, 0.42, 0.34, 0.32, stone)
    c.box(x - 0.15 / c.aspect, 0.39, 0.38, 0.035, scale_colour(wood, 0.8))
    c.box(x - 0.07 / c.aspect, 0.52, 0.22, 0.22, (24, 16, 14), round_=0.04)
    _flames(c, x + 0.04 / c.aspect, 0.73, 0.15)


def _books(c: Canvas, x: float, y: float, w: float, h: float, wood: Colour) -> None:
    a, rng = c.aspect, c.rng
    c.box(x, y, w * a, h, scale_colour(wood, 0.7))
    rows = max(3, round(h / 0.135))
    for row in range(rows):
        top = y + 0.014 + row * h / rows
        tall = h / rows - 0.026
        c.box(x + 0.012 / a, top, w * a - 0.024, tall, scale_colour(wood, 0.42))
        at = 0.018
        while at < w * a - 0.05:
            thick = 0.012 + 0.018 * rng.random()
            if rng.random() < 0.9:
                tone = light_colour(
                    c,
                    ((140, 54, 48), (54, 76, 92), (98, 106, 66), (180, 144, 86), (82, 56, 84), (60, 60, 66))[
                        rng.randrange(6)
                    ],
                )
                height = tall * (0.68 + 0.28 * rng.random())
                c.box(x + at / a, top + tall - height, thick, height, tone)
                c.box(x + at / a, top + tall - height * 0.8, thick, 0.006, mix(tone, (230, 200, 130), 0.5))
            at += thick + 0.0015


def _wall_clock(c: Canvas, x: float, y: float, r: float, wood: Colour) -> None:
    face = light_colour(c, (238, 230, 210))
    c.oval(x, y, r * 1.16, r * 1.16, scale_colour(wood, 0.6))
    c.oval(x, y, r, r, face)
    for k in range(12):
        ang = k * math.pi / 6
        c.line(
            [
                (x + 0.82 * r * math.sin(ang) / c.aspect, y - 0.82 * r * math.cos(ang)),
                (x + 0.94 * r * math.sin(ang) / c.aspect, y - 0.94 * r * math.cos(ang)),
            ],
            (60, 48, 40),
            0.05 * r,
        )
    hour = (c.seed % 12) * math.pi / 6
    c.line([(x, y), (x + 0.5 * r * math.sin(hour) / c.aspect, y - 0.5 * r * math.cos(hour))], (50, 40, 36), 0.09 * r)
    c.line([(x, y), (x + 0.1 * r / c.aspect, y - 0.76 * r)], (50, 40, 36), 0.06 * r)


def _clocks(c: Canvas, x: float, y: float, wood: Colour) -> None:
    for k, (dx, dy, r) in enumerate(
        (
            (0.04, 0.12, 0.075),
            (0.15, 0.08, 0.05),
            (0.15, 0.24, 0.045),
            (0.25, 0.15, 0.08),
            (0.35, 0.08, 0.05),
            (0.36, 0.26, 0.06),
            (0.05, 0.33, 0.05),
            (0.43, 0.15, 0.06),
        )
    ):
        c.seed += k * 5
        _wall_clock(c, x + dx, y + dy, r, wood)
    c.seed -= sum(k * 5 for k in range(8))


def _bed(c: Canvas, wood: Colour) -> None:
    a = c.aspect
    c.box(0.5, 0.44, 0.05, 0.38, scale_colour(wood, 0.7))
    c.box(0.5, 0.6, 0.72, 0.2, light_colour(c, (96, 120, 150)), round_=0.03)
    c.box(0.5 + 0.05 / a, 0.56, 0.2, 0.08, light_colour(c, (240, 236, 226)), round_=0.03)


def _hall(c: Canvas, wood: Colour) -> None:
    red = light_colour(c, (150, 44, 44))
    for side in (0.44, 0.94):
        c.poly([(side, 0), (side + 0.1, 0), (side + 0.07, FLOOR), (side + 0.015, FLOOR)], red)
        for k in range(3):
            c.line([(side + 0.02 + 0.025 * k, 0), (side + 0.025 + 0.016 * k, FLOOR)], scale_colour(red, 0.75), 0.006)
    for row in range(3):
        for k in range(9):
            c.box(
                0.02 + 0.115 * k - 0.02 * row,
                0.8 + 0.07 * row,
                0.13 + 0.02 * row,
                0.05,
                scale_colour(wood, 0.55 - 0.08 * row),
                round_=0.015,
            )


def _light(c: Canvas, picture: Picture, *, windowed: bool) -> None:
    p = c.palette
    if p.dark:
        c.glow(0.66, 0.5, 0.95, (255, 186, 104), 0.5)
        c.glow(0.62, 0.56, 0.32, (255, 214, 140), 0.5)
        c.glow(0.28, 0.4, 0.4, p.horizon, 0.14)
    elif windowed:  # daylight falls in through the window
        c.poly([(0.2, 0.56), (0.36, 0.56), (0.62, 1), (0.3, 1)], p.light, 44)
        c.glow(0.28, 0.36, 0.75, p.light, 0.42)
    del picture
