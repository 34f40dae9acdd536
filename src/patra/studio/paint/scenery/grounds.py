"""Paints places that people built under the sky, by their word: an airport, a market, a graveyard, a canal (B6)."""

import math
from collections.abc import Callable

from patra.studio.paint import things
from patra.studio.paint.canvas import Canvas
from patra.studio.paint.palette import mix, scale_colour
from patra.studio.paint.scenery.sky import paint_ridges
from patra.studio.paint.scenery.terrain import ground, hill, toned_land, water
from patra.studio.paint.scenery.towns import halt, market, parking, square, yard
from patra.studio.paint.scenery.wilds import camp, cave, ice, outdoors, rows, space, swamp, volcano, waterfall
from patra.studio.script.shots import Picture

Light = tuple[float, float]


def airport(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    a = c.aspect
    ground(c, picture, horizon, 0.4)
    hall = toned_land(c, (206, 212, 218), 0.5)
    c.box(0, horizon - 0.1, 0.56 * a, 0.12, hall)
    c.box(0.02, horizon - 0.07, 0.5 * a, 0.05, c.palette.window if c.palette.dark else scale_colour(hall, 0.72))
    c.box(0.62, horizon - 0.3, 0.05, 0.32, hall)
    c.box(0.62 - 0.035 / a, horizon - 0.36, 0.12, 0.08, scale_colour(hall, 0.7), round_=0.01)
    tar = toned_land(c, (96, 100, 108), 0.8)
    c.poly([(0, horizon + 0.14), (1, horizon + 0.1), (1, 0.92), (0, 1)], tar)
    for k in range(7):
        c.poly(
            [
                (0.02 + 0.15 * k, horizon + 0.29),
                (0.1 + 0.15 * k, horizon + 0.287),
                (0.09 + 0.15 * k, horizon + 0.305),
                (0.005 + 0.15 * k, horizon + 0.308),
            ],
            mix(tar, (250, 250, 240), 0.7),
        )
    body, y = toned_land(c, (244, 246, 248), 0.9, 0.8), horizon + 0.13
    c.poly([(0.3, y - 0.06), (0.27, y - 0.2), (0.31, y - 0.2), (0.37, y - 0.07)], toned_land(c, (206, 84, 70), 0.9))
    c.box(0.29, y - 0.075, 0.46 * a, 0.085, body, round_=0.042)
    c.poly([(0.48, y - 0.01), (0.58, y - 0.01), (0.5, y + 0.1), (0.45, y + 0.1)], scale_colour(body, 0.86))
    for k in range(11):
        c.oval(0.38 + 0.028 * k, y - 0.045, 0.01, 0.01, (70, 96, 120))
    for x in (0.42, 0.68):
        c.oval(x, y + 0.03, 0.017, 0.017, (40, 40, 44))
    del light


def stadium(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    stand = toned_land(c, (170, 172, 180), 0.4)
    c.poly([(0, horizon - 0.24), (1, horizon - 0.24), (1, horizon + 0.03), (0, horizon + 0.03)], stand)
    for row in range(7):
        for k in range(60):
            tone = ((206, 96, 80), (240, 220, 190), (90, 120, 160), (220, 180, 90))[c.rng.randrange(4)]
            c.oval((k + c.rng.random()) / 60, horizon - 0.21 + 0.034 * row, 0.009, 0.012, toned_land(c, tone, 0.4, 0.5))
    for x in (0.1, 0.9):
        c.line([(x, horizon - 0.2), (x, horizon - 0.44)], c.palette.land(0.6), 0.012)
        c.box(x - 0.05 / c.aspect, horizon - 0.48, 0.1, 0.05, (250, 246, 224), round_=0.006)
        c.glow(x, horizon - 0.45, 0.4, (255, 250, 224), 0.5 if c.palette.dark else 0.18)
    for k in range(8):
        t1, t2 = (k / 8) ** 1.5, ((k + 1) / 8) ** 1.5
        y1, y2 = horizon + 0.03 + (0.97 - horizon) * t1, horizon + 0.03 + (0.97 - horizon) * t2
        c.poly(
            [(0, y1), (1, y1), (1, y2 + 0.01), (0, y2 + 0.01)],
            toned_land(c, (88, 160, 84) if k % 2 else (76, 146, 76), 0.8),
        )
    white = toned_land(c, (248, 250, 244), 0.8, 0.8)
    c.line([(0.12, horizon + 0.06), (0.88, horizon + 0.06)], white, 0.006)
    c.line([(0.12, horizon + 0.06), (-0.06, 1)], white, 0.008)
    c.line([(0.88, horizon + 0.06), (1.06, 1)], white, 0.008)
    c.arc(0.5, horizon + 0.2, 0.24, 0.075, 0, 360, white, 0.007)
    c.line([(0.06, horizon + 0.2), (0.94, horizon + 0.2)], white, 0.006)
    del light, picture


def castle(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    a = c.aspect
    paint_ridges(c, horizon, 3, 0.22, snow=picture.weather == "snow")
    hill(c, c.palette.land(0.5), horizon + 0.06, 0.07, 0.9)
    stone, roof = toned_land(c, (190, 180, 168), 0.55), toned_land(c, (150, 76, 70), 0.6)

    def battlement(x: float, y: float, w: float, h: float, shade: float = 1.0) -> None:
        c.box(x, y, w, h, scale_colour(stone, shade))
        for k in range(max(2, round(w / 0.04))):
            c.box(x + 0.04 * k / a, y - 0.022, 0.022, 0.024, scale_colour(stone, shade))

    base = horizon + 0.08
    battlement(0.42, base - 0.22, 0.6, 0.26)
    for x, tall, w in ((0.4, 0.4, 0.12), (0.55, 0.5, 0.14), (0.73, 0.36, 0.12)):
        battlement(x, base - tall, w, tall + 0.02, 0.93)
        c.poly(
            [
                (x - 0.02 / a, base - tall - 0.02),
                (x + w / 2 / a, base - tall - 0.17),
                (x + (w + 0.02) / a, base - tall - 0.02),
            ],
            roof,
        )
        c.box(
            x + (w / 2 - 0.014) / a,
            base - tall + 0.06,
            0.028,
            0.06,
            c.palette.window if c.palette.dark else scale_colour(stone, 0.4),
            round_=0.012,
        )
    c.oval(0.6 + 0.07 / a, base - 0.07, 0.06, 0.05, scale_colour(stone, 0.35))
    c.box(0.6 + 0.01 / a, base - 0.07, 0.12, 0.11, scale_colour(stone, 0.35))
    hill(c, c.palette.land(0.8), horizon + 0.18, 0.05, 2.6)
    for k in range(9):
        things.tree(
            c, 0.06 + 0.11 * k, horizon + 0.19 + 0.03 * c.rng.random(), 0.13 + 0.06 * c.rng.random(), 0.75, "round"
        )
    del light


def graveyard(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    a = c.aspect
    paint_ridges(c, horizon, 2, 0.14)
    ground(c, picture, horizon, 0.5)
    things.tree(c, 0.86, horizon + 0.12, 0.5, 0.75, "bare")
    for row, (y, s) in enumerate(((0.1, 0.1), (0.2, 0.15), (0.33, 0.22))):
        for k in range(6 - row):
            x = 0.08 + 0.17 * k + 0.05 * row
            stone = toned_land(c, (176, 176, 180), 0.5 + 0.15 * row)
            c.oval(x + s * 0.3 / a, horizon + y - s * 0.72, 0.3 * s, 0.3 * s, stone)
            c.box(x, horizon + y - s * 0.72, 0.6 * s, 0.74 * s, stone)
            c.line(
                [(x + 0.14 * s / a, horizon + y - 0.5 * s), (x + 0.46 * s / a, horizon + y - 0.5 * s)],
                scale_colour(stone, 0.7),
                0.03 * s,
            )
    del light


def canal(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    """Straight water between walls, a towpath beside it, a barge on it."""
    a = c.aspect
    paint_ridges(c, horizon, 2, 0.1)
    ground(c, picture, horizon, 0.45)
    for k in range(6):
        things.tree(c, 0.04 + 0.07 * k, horizon + 0.03 + 0.01 * k, 0.16 + 0.03 * k, 0.5, "round")
    water(c, horizon + 0.06, light, rough=0.6)
    p = c.palette
    path, wall = toned_land(c, (196, 172, 134), 0.85), toned_land(c, (150, 144, 138), 0.8)
    c.poly([(0, horizon + 0.05), (0.44, horizon + 0.05), (0.22, 1), (0, 1)], path)
    c.poly([(0.44, horizon + 0.05), (0.47, horizon + 0.06), (0.32, 1), (0.22, 1)], wall)
    c.poly([(0.7, horizon + 0.06), (1, horizon + 0.06), (1, horizon + 0.34)], toned_land(c, (110, 150, 90), 0.7))
    c.line([(0.7, horizon + 0.06), (1, horizon + 0.34)], wall, 0.024)
    x, y, hull = 0.5, horizon + 0.24, toned_land(c, (72, 84, 104), 0.9)
    c.poly([(x, y), (x + 0.3, y), (x + 0.33, y - 0.05), (x - 0.03, y - 0.05)], hull)
    c.box(x + 0.02, y - 0.13, 0.2 * a, 0.08, toned_land(c, (174, 76, 60), 0.9), round_=0.008)
    for k in range(4):
        c.box(x + 0.035 + 0.045 * k, y - 0.11, 0.04, 0.035, p.window if p.dark else (226, 232, 226))
    for k in range(4):
        c.line([(x, y + 0.02 + 0.015 * k), (x + 0.3, y + 0.02 + 0.015 * k)], mix(p.water(0.7), hull, 0.4), 0.005)


def mill(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    a = c.aspect
    paint_ridges(c, horizon, 2, 0.12)
    ground(c, picture, horizon, 0.4)
    hill(c, c.palette.land(0.6), horizon + 0.08, 0.04, 1.2)
    x, base, s = 0.64, horizon + 0.14, 0.46
    wall, dark = toned_land(c, (228, 214, 190), 0.7), toned_land(c, (116, 76, 56), 0.7)
    c.poly(
        [
            (x - 0.22 * s / a, base),
            (x - 0.15 * s / a, base - 0.8 * s),
            (x + 0.15 * s / a, base - 0.8 * s),
            (x + 0.22 * s / a, base),
        ],
        wall,
    )
    c.poly([(x - 0.18 * s / a, base - 0.79 * s), (x, base - 1.0 * s), (x + 0.18 * s / a, base - 0.79 * s)], dark)
    c.box(x - 0.05 * s / a, base - 0.2 * s, 0.1 * s, 0.2 * s, dark, round_=0.01)
    for k in range(4):
        ang = 0.5 + k * math.pi / 2
        dx, dy = math.sin(ang), -math.cos(ang)
        hub = (x, base - 0.78 * s)
        tip = (hub[0] + 0.62 * s * dx / a, hub[1] + 0.62 * s * dy)
        side = (0.12 * s * math.cos(ang) / a, 0.12 * s * math.sin(ang))
        c.line([hub, tip], dark, 0.012)
        inner = (hub[0] + 0.14 * s * dx / a, hub[1] + 0.14 * s * dy)
        c.poly(
            [inner, tip, (tip[0] + side[0], tip[1] + side[1]), (inner[0] + side[0], inner[1] + side[1])],
            mix(wall, c.palette.light, 0.2),
            225,
        )
    c.oval(x, base - 0.78 * s, 0.02, 0.02, dark)
    things.grass(c, c.palette.land(0.9), 90, 0.05, 1.0)
    del light


def facade(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    """A public building with columns and steps: a university, a parliament, a town hall."""
    a = c.aspect
    paint_ridges(c, horizon, 1, 0.08)
    ground(c, picture, horizon, 0.5)
    stone = toned_land(c, (224, 214, 196), 0.7, 0.72)
    shade = scale_colour(stone, 0.8)
    left, right, base = 0.24, 0.8, horizon + 0.1
    c.box(left - 0.1, base - 0.32, (right - left + 0.2) * a, 0.32, scale_colour(stone, 0.92))
    for x in (left - 0.085, left - 0.04, right + 0.02, right + 0.065):
        for y in (0.27, 0.14):
            c.box(
                x,
                base - y,
                0.045,
                0.08,
                c.palette.window if c.palette.dark else scale_colour(stone, 0.55),
                round_=0.006,
            )
    c.box(left, base - 0.36, (right - left) * a, 0.36, shade)
    c.poly([(left - 0.03, base - 0.36), ((left + right) / 2, base - 0.53), (right + 0.03, base - 0.36)], stone)
    c.poly([(left + 0.04, base - 0.375), ((left + right) / 2, base - 0.49), (right - 0.04, base - 0.375)], shade)
    c.box(left - 0.03, base - 0.37, (right - left + 0.06) * a, 0.03, stone)
    for k in range(6):
        x = left + 0.02 + (right - left - 0.075) * k / 5
        c.box(x, base - 0.34, 0.06, 0.34, stone)
        c.box(x + 0.04 / a, base - 0.34, 0.02, 0.34, scale_colour(stone, 0.88))
    c.box(0.5 - 0.01, base - 0.17, 0.08, 0.17, scale_colour(stone, 0.4))
    for k in range(4):
        c.box(
            left - 0.03 - 0.014 * k,
            base + 0.02 * k,
            (right - left + 0.06 + 0.028 * k) * a,
            0.022,
            scale_colour(stone, 1.0 - 0.06 * k),
        )
    c.poly([(0.44, base + 0.08), (0.6, base + 0.08), (0.8, 1), (0.24, 1)], toned_land(c, (206, 196, 178), 0.8))
    for x in (0.06, 0.93):
        things.tree(c, x, base + 0.05, 0.36, 0.7, "round")
    del light


def works(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    """Something being built: scaffolding and a crane."""
    a = c.aspect
    ground(c, picture, horizon, 0.4)
    wall, steel = toned_land(c, (190, 178, 164), 0.6), toned_land(c, (226, 160, 60), 0.8, 0.8)
    base = horizon + 0.12
    c.box(0.14, base - 0.4, 0.34 * a, 0.42, wall)
    for row in range(4):
        for k in range(6):
            c.box(0.155 + 0.055 * k, base - 0.38 + 0.1 * row, 0.055, 0.06, scale_colour(wall, 0.6))
    for k in range(7):
        c.line([(0.13 + 0.06 * k, base), (0.13 + 0.06 * k, base - 0.46)], toned_land(c, (130, 120, 110), 0.8), 0.006)
    for row in range(5):
        c.line([(0.12, base - 0.1 * row), (0.5, base - 0.1 * row)], toned_land(c, (150, 120, 84), 0.8), 0.009)
    c.line([(0.72, base + 0.02), (0.72, 0.1)], steel, 0.018)
    c.line([(0.4, 0.16), (0.9, 0.16)], steel, 0.014)
    c.line([(0.4, 0.16), (0.72, 0.08), (0.9, 0.16)], steel, 0.006)
    for k in range(14):
        y = base - (base - 0.12) * k / 14
        c.line([(0.711, y), (0.729, y - 0.04)], scale_colour(steel, 0.7), 0.004)
    c.box(0.85, 0.165, 0.09, 0.06, toned_land(c, (120, 116, 112), 0.8))
    c.line([(0.48, 0.16), (0.48, 0.36)], scale_colour(c.palette.near, 1.0), 0.004)
    c.box(0.48 - 0.05 / a, 0.36, 0.1, 0.05, toned_land(c, (170, 90, 60), 0.8))
    hill(c, toned_land(c, (176, 146, 108), 0.85), base + 0.1, 0.03, 1.7)
    del light


Painter = Callable[[Canvas, Picture, float, Light], None]
GROUNDS: dict[str, tuple[Painter, float]] = {
    "outdoors": (outdoors, 0.6),
    "airport": (airport, 0.5),
    "stadium": (stadium, 0.5),
    "cave": (cave, 0.5),
    "castle": (castle, 0.58),
    "graveyard": (graveyard, 0.5),
    "market": (market, 0.5),
    "square": (square, 0.52),
    "canal": (canal, 0.5),
    "waterfall": (waterfall, 0.5),
    "ice": (ice, 0.52),
    "volcano": (volcano, 0.6),
    "swamp": (swamp, 0.5),
    "camp": (camp, 0.54),
    "mill": (mill, 0.58),
    "facade": (facade, 0.58),
    "works": (works, 0.6),
    "halt": (halt, 0.5),
    "yard": (yard, 0.5),
    "parking": (parking, 0.5),
    "rows": (rows, 0.42),
    "space": (space, 0.5),
}
"""What paints the place of a word, and where its horizon is."""
