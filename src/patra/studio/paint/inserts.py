"""Paints a close-up of a thing, in the light of its place (B6)."""

import math
from collections.abc import Callable

import numpy as np

from patra.studio.paint.canvas import Canvas, noise
from patra.studio.paint.palette import Colour, mix, scale_colour
from patra.studio.script.scenes import INSIDE
from patra.studio.script.shots import Picture

TABLE = 0.6


def paint_insert(c: Canvas, picture: Picture) -> None:
    """A surface in front, the place out of focus behind, and the thing between them."""
    p = c.palette
    wood = mix((124, 84, 56), p.near, 0.36 if p.dark else 0.06)
    warm: Colour = (255, 190, 110)
    if picture.place in INSIDE:
        back = mix((120, 86, 62), p.near, 0.42 if p.dark else 0.1)
        c.gradient([(0, scale_colour(back, 0.6)), (1, back)], 0, TABLE)
    else:
        c.gradient([(0, p.top), (0.6, p.middle), (1, p.horizon)], 0, TABLE)
    for k in range(16):  # lights out of focus
        tone = mix(warm if p.dark or picture.place in INSIDE else p.light, p.middle, 0.3 * c.rng.random())
        r = 0.03 + 0.05 * c.rng.random()
        c.oval(c.rng.random(), TABLE * (0.12 + 0.8 * c.rng.random()), r, r, tone, 26 + k % 4 * 9)
    c.gradient([(0, scale_colour(wood, 0.86)), (0.5, wood), (1, scale_colour(wood, 0.7))], TABLE, 1)
    grain = noise(400, 90, c.seed, scale=10, octaves=3, stretch=14)
    mask = np.zeros((225, 400), np.float32)
    mask[135:, :] = np.clip(grain - 0.45, 0, 1) * 0.6
    c.veil(mask, scale_colour(wood, 0.5))
    c.glow(0.34, TABLE + 0.08, 0.9, warm if p.dark else p.light, 0.34, flat=0.55)
    _THINGS.get(picture.subject, _book)(c, picture)
    if p.dark:
        c.glow(0.5, 0.55, 0.8, warm, 0.22)


def _shadow(c: Canvas, points: list[tuple[float, float]]) -> None:
    c.poly([(x + 0.012, y + 0.022) for x, y in points], (20, 12, 10), 110)


def _paper(c: Canvas) -> Colour:
    return mix((246, 236, 212), c.palette.near, 0.18 if c.palette.dark else 0.0)


def _letter(c: Canvas, picture: Picture) -> None:
    paper, ink = _paper(c), (62, 52, 66)
    envelope = scale_colour(mix(paper, (206, 176, 130), 0.55), 0.95)
    flap = [(0.52, 0.5), (0.86, 0.56), (0.82, 0.86), (0.47, 0.79)]
    _shadow(c, flap)
    c.poly(flap, envelope)
    c.line([(0.52, 0.5), (0.66, 0.7), (0.86, 0.56)], scale_colour(envelope, 0.8), 0.006)
    c.oval(0.665, 0.69, 0.03, 0.03, (160, 44, 40))
    c.oval(0.663, 0.687, 0.019, 0.019, (186, 62, 52))
    sheet = [(0.2, 0.4), (0.57, 0.36), (0.62, 0.86), (0.23, 0.92)]
    _shadow(c, sheet)
    c.poly(sheet, paper)
    c.poly([(0.2, 0.4), (0.57, 0.36), (0.588, 0.53), (0.211, 0.575)], mix(paper, (255, 255, 250), 0.3))
    rng = c.rng
    for row in range(11):
        t = 0.08 + row * 0.078
        x1, y1 = 0.235 + 0.03 * t, 0.4 + 0.52 * t - 0.004
        length = (0.3 if row not in {3, 7, 10} else 0.17) + 0.02 * rng.random()
        points = [
            (
                x1 + length * k / 46,
                y1 - 0.034 * k / 46 * (length / 0.3) + 0.0052 * math.sin(k * 1.9 + row) * (k % 9 != 0),
            )
            for k in range(47)
        ]
        for start in range(0, 46, 8):  # words
            c.line(points[start : start + 7], ink, 0.0034)
    del picture


def _book(c: Canvas, picture: Picture) -> None:
    paper, cover = _paper(c), (112, 46, 44)
    whole = [(0.2, 0.5), (0.8, 0.5), (0.88, 0.9), (0.12, 0.9)]
    _shadow(c, whole)
    c.poly(whole, cover)
    c.poly([(0.215, 0.49), (0.5, 0.51), (0.5, 0.89), (0.14, 0.875)], paper)
    c.poly([(0.5, 0.51), (0.785, 0.49), (0.86, 0.875), (0.5, 0.89)], mix(paper, (120, 100, 80), 0.08))
    c.poly([(0.485, 0.51), (0.515, 0.51), (0.52, 0.89), (0.48, 0.89)], scale_colour(paper, 0.78))
    for side in (0, 1):
        for row in range(10):
            t = row / 10
            y = 0.535 + 0.33 * t
            left = (0.22 - 0.055 * t, 0.465) if side == 0 else (0.535, 0.77 + 0.06 * t)
            end = left[1] - (0.09 if row in {4, 9} else 0) * c.rng.random()
            c.line([(left[0], y), (end, y + (0.008 if side == 0 else -0.008))], (96, 84, 78), 0.004)
    c.poly([(0.55, 0.5), (0.565, 0.5), (0.59, 0.95), (0.575, 0.96)], (176, 52, 48))
    del picture


def _clock(c: Canvas, picture: Picture) -> None:
    brass, a = (196, 156, 78), c.aspect
    brass = mix(brass, c.palette.near, 0.2 if c.palette.dark else 0.0)
    x, y, r = 0.5, 0.54, 0.3
    c.oval(x + 0.02, y + 0.04, r * 1.16, r * 1.12, (20, 12, 10), 120)
    c.box(x - 0.035 / a, y - r * 1.34, 0.07, 0.08, scale_colour(brass, 0.8), round_=0.02)
    c.arc(x, y - r * 1.42, 0.06, 0.06, 0, 360, brass, 0.014)
    c.oval(x, y, r * 1.14, r * 1.14, scale_colour(brass, 0.74))
    c.oval(x - 0.006, y - 0.008, r * 1.1, r * 1.1, brass)
    c.oval(x, y, r * 0.98, r * 0.98, scale_colour(brass, 0.6))
    c.oval(x, y, r * 0.95, r * 0.95, _paper(c))
    for k in range(60):
        ang = k * math.pi / 30
        inner = 0.78 if k % 5 == 0 else 0.86
        c.line(
            [
                (x + inner * r * math.sin(ang) / a, y - inner * r * math.cos(ang)),
                (x + 0.9 * r * math.sin(ang) / a, y - 0.9 * r * math.cos(ang)),
            ],
            (54, 44, 40),
            0.011 if k % 5 == 0 else 0.004,
        )
    hour = (2 + c.seed % 8) * math.pi / 6 + 0.2
    c.line([(x, y), (x + 0.46 * r * math.sin(hour) / a, y - 0.46 * r * math.cos(hour))], (36, 32, 40), 0.02)
    c.line([(x, y), (x + 0.08 * r / a, y - 0.74 * r)], (36, 32, 40), 0.013)
    c.line([(x, y), (x - 0.5 * r / a, y + 0.4 * r)], (170, 50, 44), 0.005)
    c.oval(x, y, 0.018, 0.018, brass)
    c.poly(
        [
            (x - 0.2 * r / a, y - 0.9 * r),
            (x + 0.5 * r / a, y - 0.78 * r),
            (x - 0.5 * r / a, y + 0.75 * r),
            (x - 0.8 * r / a, y + 0.45 * r),
        ],
        (255, 255, 255),
        20,
    )
    for k in range(13):
        c.oval(0.62 + 0.024 * k + 0.004 * math.sin(k), 0.86 + 0.03 * math.sin(k * 0.6), 0.014, 0.01, brass)
    del picture


def _key(c: Canvas, picture: Picture) -> None:
    iron, a = mix((150, 128, 84), c.palette.near, 0.2 if c.palette.dark else 0), c.aspect
    for dx, dy, tone in ((0.012, 0.022, (24, 14, 12)), (0.0, 0.0, iron)):
        c.arc(0.33 + dx, 0.72 + dy, 0.1, 0.1, 0, 360, tone, 0.034)
        c.line([(0.33 + 0.09 / a + dx, 0.72 + dy), (0.72 + dx, 0.69 + dy)], tone, 0.032)
        for k, drop in ((0.64, 0.09), (0.68, 0.06), (0.715, 0.1)):
            c.line([(k + dx, 0.695 + dy), (k + 0.004 + dx, 0.695 + drop + dy)], tone, 0.026)
    c.line([(0.4, 0.708), (0.7, 0.684)], mix(iron, (255, 250, 230), 0.5), 0.007)
    del picture


def _cup(c: Canvas, picture: Picture) -> None:
    china, a = mix((238, 234, 226), c.palette.near, 0.16 if c.palette.dark else 0), c.aspect
    x, y = 0.46, 0.8
    c.oval(x + 0.02, y + 0.04, 0.34, 0.085, (20, 12, 10), 120)
    c.oval(x, y, 0.32, 0.078, scale_colour(china, 0.84))
    c.oval(x, y - 0.008, 0.3, 0.066, china)
    c.arc(x + 0.22 / a, y - 0.19, 0.1, 0.095, -95, 120, scale_colour(china, 0.9), 0.032)
    body = [
        (x + s * w / a, y - 0.34 + 0.34 * t)
        for s, ts in ((-1, range(11)), (1, range(10, -1, -1)))
        for t, w in ((k / 10, 0.205 - 0.085 * (k / 10) ** 2.6) for k in ts)
    ]
    c.poly(body, china)
    c.poly([(px, py) for px, py in body if px > x + 0.03] + [(x + 0.05, y)], scale_colour(china, 0.9))
    c.oval(x, y - 0.34, 0.205, 0.05, scale_colour(china, 0.92))
    c.oval(x, y - 0.335, 0.185, 0.041, (134, 84, 46))
    c.oval(x - 0.03, y - 0.338, 0.09, 0.016, (170, 112, 64))
    blue = mix((64, 96, 150), china, 0.2)
    for k in range(9):
        ang = -1.1 + 0.275 * k
        c.oval(
            x + 0.185 * math.sin(ang) / a,
            y - 0.2 + 0.03 * math.cos(ang),
            0.013 * math.cos(ang * 0.8) + 0.003,
            0.016,
            blue,
        )
    for k in range(3):  # steam
        line = [(x + (k - 1) * 0.06 / a + 0.02 * math.sin(t * 0.55 + k * 2) / a, y - 0.4 - 0.03 * t) for t in range(12)]
        c.line(line, (255, 252, 246), 0.014, 46)
    del picture


def _candle(c: Canvas, picture: Picture) -> None:
    a = c.aspect
    c.oval(0.5, 0.84, 0.17, 0.045, (146, 112, 58))
    c.oval(0.5, 0.83, 0.13, 0.034, (186, 148, 82))
    c.box(0.5 - 0.05 / a, 0.47, 0.1, 0.36, (240, 228, 200), round_=0.012)
    c.box(0.5 + 0.018 / a, 0.48, 0.032, 0.34, (214, 196, 160))
    c.line([(0.5, 0.47), (0.502, 0.44)], (40, 30, 26), 0.008)
    c.glow(0.5, 0.38, 0.85, (255, 176, 84), 0.9)
    c.poly(
        [(0.5, 0.27), (0.5 + 0.034 / a, 0.39), (0.5 + 0.02 / a, 0.44), (0.5 - 0.02 / a, 0.44), (0.5 - 0.034 / a, 0.39)],
        (255, 190, 84),
    )
    c.poly([(0.5, 0.33), (0.5 + 0.018 / a, 0.4), (0.5, 0.44), (0.5 - 0.018 / a, 0.4)], (255, 244, 200))
    del picture


def _map(c: Canvas, picture: Picture) -> None:
    sheet = [(0.14, 0.46), (0.84, 0.42), (0.92, 0.9), (0.08, 0.94)]
    paper = mix(_paper(c), (206, 170, 112), 0.35)
    _shadow(c, sheet)
    c.poly(sheet, paper)
    coast = [(0.2 + 0.6 * k / 40, 0.66 + 0.1 * math.sin(k * 0.31) + 0.025 * math.sin(k * 1.3)) for k in range(41)]
    c.poly([*coast, (0.86, 0.86), (0.16, 0.9)], mix(paper, (110, 150, 160), 0.45))
    c.line(coast, (94, 66, 44), 0.005)
    for k in range(9):
        c.line(
            [(0.28 + 0.05 * k, 0.6 - 0.02 * math.sin(k)), (0.3 + 0.05 * k, 0.59 - 0.02 * math.sin(k))],
            (170, 44, 40),
            0.007,
        )
    c.line([(0.73, 0.55), (0.76, 0.59)], (170, 44, 40), 0.009)
    c.line([(0.76, 0.55), (0.73, 0.59)], (170, 44, 40), 0.009)
    c.oval(0.3, 0.8, 0.06, 0.05, (186, 148, 82))
    c.oval(0.3, 0.797, 0.05, 0.041, (240, 232, 212))
    c.poly([(0.3, 0.76), (0.306, 0.8), (0.294, 0.8)], (170, 44, 40))
    c.poly([(0.3, 0.835), (0.306, 0.8), (0.294, 0.8)], (50, 50, 60))
    del picture


def _lamp(c: Canvas, picture: Picture) -> None:
    """An old lantern, lit."""
    a, iron = c.aspect, (58, 50, 46)
    c.oval(0.5, 0.86, 0.2, 0.045, (20, 12, 10), 120)
    c.arc(0.5, 0.3, 0.13, 0.16, 180, 360, iron, 0.012)
    c.glow(0.5, 0.55, 0.95, (255, 176, 84), 0.85)
    c.box(0.5 - 0.14 / a, 0.38, 0.28, 0.4, (255, 206, 124), 90, round_=0.04)
    c.glow(0.5, 0.6, 0.3, (255, 226, 150), 0.9)
    c.poly(
        [(0.5, 0.47), (0.5 + 0.035 / a, 0.6), (0.5 + 0.02 / a, 0.67), (0.5 - 0.02 / a, 0.67), (0.5 - 0.035 / a, 0.6)],
        (255, 236, 170),
    )
    for k in (-0.14, -0.047, 0.047, 0.14):
        c.box(0.5 + (k - 0.008) / a, 0.38, 0.016, 0.4, iron)
    c.poly([(0.5 - 0.18 / a, 0.39), (0.5 - 0.07 / a, 0.28), (0.5 + 0.07 / a, 0.28), (0.5 + 0.18 / a, 0.39)], iron)
    c.box(0.5 - 0.18 / a, 0.76, 0.36, 0.09, iron, round_=0.02)
    del picture


def _bell(c: Canvas, picture: Picture) -> None:
    a, brass = c.aspect, mix((190, 148, 70), c.palette.near, 0.2 if c.palette.dark else 0)
    shape = [
        (0.5 + s * w / a, 0.24 + 0.5 * t)
        for s, order in ((-1, 1), (1, -1))
        for t, w in [(k / 12, 0.05 + 0.1 * (k / 12) ** 0.6 + 0.1 * (k / 12) ** 6) for k in range(13)][::order]
    ]
    c.box(0.28, 0.12, 0.44 * a, 0.06, (84, 58, 40))
    c.line([(0.5, 0.18), (0.5, 0.26)], (60, 46, 36), 0.02)
    c.oval(0.5, 0.76, 0.035, 0.035, (90, 70, 40))
    c.poly(shape, brass)
    c.poly([(x, y) for x, y in shape if x > 0.52] + [(0.52, 0.74), (0.52, 0.26)], scale_colour(brass, 0.8))
    c.line([(0.5 - 0.17 / a, 0.63), (0.5 + 0.17 / a, 0.63)], scale_colour(brass, 0.66), 0.01)
    del picture


_THINGS: dict[str, Callable[[Canvas, Picture], None]] = {
    "letter": _letter,
    "book": _book,
    "clock": _clock,
    "key": _key,
    "cup": _cup,
    "candle": _candle,
    "map": _map,
    "lamp": _lamp,
    "bell": _bell,
}
