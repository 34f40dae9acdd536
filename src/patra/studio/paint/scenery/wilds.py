"""Paints wild places by their word: a cave, a waterfall, a glacier, space (B6)."""

import math

from patra.studio.paint import things
from patra.studio.paint.canvas import Canvas
from patra.studio.paint.palette import Colour, mix, scale_colour
from patra.studio.paint.scenery.sky import paint_ridges
from patra.studio.paint.scenery.terrain import SNOW, ground, hill, toned_land, water
from patra.studio.script.shots import Picture

Light = tuple[float, float]


def outdoors(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    """Open ground under the sky: all that is said is that it is outside."""
    ground(c, picture, horizon, 0.35)
    hill(c, c.palette.land(0.3), horizon + 0.03, 0.03, 1.4)
    hill(c, c.palette.land(0.55), horizon + 0.12, 0.025, 3.1)
    del light


def cave(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    """Dark rock around an opening through which the light comes: also a tunnel, a mine."""
    p, a = c.palette, c.aspect
    rock = toned_land(c, (86, 78, 80), 0.95, 0.5)
    c.gradient([(0, scale_colour(rock, 0.5)), (1, scale_colour(rock, 0.8))])
    for k in range(6):
        r = 0.46 - 0.05 * k
        c.oval(0.6, 0.5, r * 1.25, r, mix(scale_colour(rock, 0.62), p.horizon, 0.13 * k))
    c.glow(0.6, 0.5, 0.7, p.light, 0.5 if not p.dark else 0.22)
    c.poly([(0.5, 0.62), (0.7, 0.62), (1.1, 1), (0.1, 1)], mix(scale_colour(rock, 0.9), p.light, 0.12))
    for k in range(16):
        x = (k + 0.6 * c.rng.random()) / 16
        tall = 0.08 + 0.2 * c.rng.random() * (1.2 - abs(0.6 - x))
        c.poly([(x - 0.03, 0), (x + 0.03, 0), (x, tall)], scale_colour(rock, 0.42))
    for x, s in ((0.12, 0.16), (0.26, 0.1), (0.9, 0.14)):
        c.poly(
            [(x - s / a, 0.98), (x - 0.5 * s / a, 0.98 - s), (x + 0.4 * s / a, 0.98 - 1.2 * s), (x + s / a, 0.98)],
            scale_colour(rock, 0.6),
        )
    del picture, horizon, light


def waterfall(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    paint_ridges(c, horizon, 3, 0.3)
    rock = toned_land(c, (120, 112, 108), 0.75, 0.5)
    for edge, start in ((0.0, 0.44), (1.0, 0.62)):
        line = [(edge, 0.1)] + [
            (edge + (start - edge) * t, 0.12 + 0.05 * math.sin(7 * t + edge)) for t in (0.2, 0.5, 0.8, 1.0)
        ]
        c.poly([*line, (start, 0.8), (edge, 1)], scale_colour(rock, 1.0 if edge else 0.9))
        for k in range(9):
            x = edge + (start - edge) * (0.1 + 0.1 * k)
            c.line([(x, 0.2 + 0.1 * (k % 3)), (x + 0.01, 0.36 + 0.12 * (k % 4))], scale_colour(rock, 0.78), 0.008)
    white = mix(c.palette.water(0.2), (250, 253, 255), 0.6)
    c.poly([(0.43, 0.16), (0.63, 0.16), (0.64, 0.8), (0.42, 0.8)], white)
    for _ in range(22):
        x = 0.43 + 0.2 * c.rng.random()
        c.line(
            [(x, 0.17), (x + 0.004, 0.5 + 0.28 * c.rng.random())],
            mix(white, c.palette.water(0.6), 0.25 + 0.3 * c.rng.random()),
            0.006,
        )
    water(c, 0.78, light, rough=0.8)
    for k in range(12):
        c.oval(0.4 + 0.022 * k, 0.79, 0.05, 0.026, (250, 253, 255), 120)
    for k in range(5):
        things.tree(c, 0.06 + 0.05 * k, 0.2 + 0.03 * k, 0.12, 0.7, "pine")
        things.tree(c, 0.78 + 0.05 * k, 0.24 + 0.02 * k, 0.12, 0.7, "pine")
    del horizon, picture


def ice(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    paint_ridges(c, horizon, 3, 0.3, snow=True)
    pale = mix(SNOW, c.palette.middle, 0.25 if not c.palette.dark else 0.6)
    for k in range(3):
        hill(
            c,
            scale_colour(mix(pale, (150, 200, 226), 0.3 - 0.1 * k), 1.0 - 0.04 * k),
            horizon + 0.05 + 0.13 * k,
            0.03,
            2.2 * k,
        )
    for _ in range(9):
        x, y = c.rng.random(), horizon + 0.1 + 0.3 * c.rng.random()
        c.line([(x, y), (x + 0.05, y + 0.012), (x + 0.07, y + 0.03)], mix(pale, (96, 160, 200), 0.6), 0.005)
    for x, s in ((0.8, 0.2), (0.66, 0.12), (0.14, 0.14)):
        y, a = horizon + 0.16, c.aspect
        c.poly(
            [
                (x - s / a, y),
                (x - 0.5 * s / a, y - 0.9 * s),
                (x, y - 0.6 * s),
                (x + 0.3 * s / a, y - 1.1 * s),
                (x + s / a, y),
            ],
            mix(pale, (170, 214, 236), 0.5),
        )
        c.poly(
            [(x, y - 0.6 * s), (x + 0.3 * s / a, y - 1.1 * s), (x + s / a, y), (x + 0.2 * s / a, y)],
            mix(pale, (120, 180, 214), 0.5),
        )
    del light, picture


def volcano(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    paint_ridges(c, horizon, 2, 0.12)
    rock = toned_land(c, (92, 80, 84), 0.6, 0.6)
    c.poly([(0.16, horizon + 0.12), (0.5, 0.2), (0.54, 0.23), (0.6, 0.22), (0.64, 0.2), (0.98, horizon + 0.12)], rock)
    c.poly([(0.64, 0.2), (0.98, horizon + 0.12), (0.66, horizon + 0.12), (0.58, 0.23)], scale_colour(rock, 0.8))
    for dx, run in ((0.0, 0.28), (0.06, 0.2), (-0.05, 0.16)):
        c.line(
            [(0.57 + dx * 0.4, 0.22), (0.56 + dx, 0.22 + run * 0.5), (0.58 + 1.6 * dx, 0.22 + run)],
            (238, 110, 50),
            0.014,
        )
    c.glow(0.57, 0.2, 0.35, (255, 130, 60), 0.7)
    for k in range(12):
        r = 0.04 + 0.012 * k
        c.oval(
            0.57 + 0.012 * k * math.sin(k),
            0.17 - 0.016 * k,
            r,
            r * 0.8,
            mix((110, 100, 104), c.palette.middle, 0.06 * k),
            150,
        )
    hill(c, c.palette.land(0.85), horizon + 0.16, 0.04, 1.0)
    del light, picture


def swamp(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    paint_ridges(c, horizon, 2, 0.08)
    water(c, horizon, light, rough=0.5)
    moss = toned_land(c, (104, 122, 72), 0.75, 0.5)
    for k in range(9):
        x, y = c.rng.random(), horizon + 0.05 + 0.4 * (k / 9)
        c.oval(x, y, 0.12 + 0.2 * k / 9, 0.018 + 0.02 * k / 9, scale_colour(moss, 0.9))
        for _ in range(9):
            px = x + (c.rng.random() - 0.5) * 0.14
            c.line([(px, y), (px + 0.006, y - 0.05 - 0.1 * k / 9)], scale_colour(moss, 1.15), 0.005)
    for x in (0.18, 0.82, 0.92):
        things.tree(c, x, horizon + 0.16, 0.42, 0.75, "bare")
    del picture


def camp(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    a = c.aspect
    paint_ridges(c, horizon, 3, 0.2)
    ground(c, picture, horizon, 0.4)
    for k in range(8):
        things.tree(c, 0.04 + 0.13 * k, horizon + 0.05, 0.18 + 0.06 * c.rng.random(), 0.45, "pine")
    tones: tuple[Colour, ...] = ((206, 120, 70), (92, 130, 110), (180, 160, 110))
    for k, (x, y, s) in enumerate(((0.7, 0.24, 0.3), (0.46, 0.15, 0.18), (0.9, 0.14, 0.17))):
        base, tone = horizon + y, toned_land(c, tones[k], 0.8, 0.7)
        c.poly([(x - 0.75 * s / a, base), (x - 0.1 * s / a, base - 0.9 * s), (x + 0.75 * s / a, base)], tone)
        c.poly(
            [(x - 0.1 * s / a, base - 0.9 * s), (x + 0.75 * s / a, base), (x + 0.3 * s / a, base)],
            scale_colour(tone, 0.8),
        )
        c.poly(
            [(x - 0.12 * s / a, base - 0.62 * s), (x - 0.3 * s / a, base), (x + 0.06 * s / a, base)],
            scale_colour(tone, 0.45),
        )
        if c.palette.dark:
            c.glow(x - 0.1 * s / a, base - 0.2 * s, 0.3 * s + 0.05, c.palette.window, 0.8)
    del light


def rows(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    """Terraces, vines, an orchard: green in rows that follow the slope."""
    paint_ridges(c, horizon, 3, 0.22)
    for k in range(7):
        tone = toned_land(c, ((126, 168, 92), (108, 152, 84))[k % 2], 0.35 + 0.09 * k, 0.55)
        hill(c, tone, horizon - 0.02 + 0.075 * k, 0.035, 0.9 + 0.25 * k)
        y = horizon + 0.01 + 0.075 * k
        for j in range(22):
            x = (j + 0.4 * (k % 2)) / 22
            dy = -0.035 * math.sin(x * 3.3 + 0.9 + 0.25 * k) - 0.0105 * math.sin(x * 7.7 + 2 * (0.9 + 0.25 * k))
            r = 0.012 + 0.004 * k
            c.oval(x, y + dy, r, r * 0.9, scale_colour(tone, 0.72))
    del light, picture


def space(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    c.gradient([(0, (10, 12, 34)), (0.6, (24, 24, 62)), (1, (44, 30, 76))])
    for _ in range(180):
        r = 0.001 + 0.003 * c.rng.random() ** 3
        c.oval(c.rng.random(), c.rng.random(), r, r, (240, 240, 255))
    for r, tone in ((0.46, (60, 110, 170)), (0.43, (72, 130, 190))):
        c.oval(0.3, 1.05, r, r, tone)
    for k in range(6):
        c.oval(0.2 + 0.045 * k, 0.78 + 0.05 * (k % 3), 0.07, 0.025, (120, 170, 120) if k % 2 else (236, 242, 248), 170)
    c.oval(0.78, 0.3, 0.12, 0.12, (206, 160, 110))
    c.arc(0.78, 0.3, 0.22, 0.05, -30, 210, (232, 206, 160), 0.012)
    c.glow(0.3, 0.7, 0.6, (120, 170, 240), 0.25)
    del picture, horizon, light
