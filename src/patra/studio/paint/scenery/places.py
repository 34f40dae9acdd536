"""Paints the place of an outdoor picture: sea, harbour, river, forest, village, street (B6)."""

import math
from collections.abc import Callable

from patra.studio.paint import things
from patra.studio.paint.canvas import Canvas
from patra.studio.paint.palette import mix, scale_colour
from patra.studio.paint.scenery.grounds import GROUNDS, outdoors
from patra.studio.paint.scenery.sky import paint_ridges, paint_sky
from patra.studio.paint.scenery.terrain import SNOW, ground, hill
from patra.studio.paint.scenery.waters import harbour, island, lake, river, sea
from patra.studio.script.shots import Picture
from patra.studio.script.signs import set_of


def paint_place(c: Canvas, picture: Picture) -> None:
    painter, horizon = GROUNDS.get(set_of(picture.sign)) or _PLACES.get(picture.place, (outdoors, 0.6))
    light = paint_sky(c, picture, horizon)
    painter(c, picture, horizon, light)
    if "bird" in picture.motifs:
        things.birds(c, 0.36 + 0.3 * c.rng.random(), horizon * 0.42, 9)
    if "kite" in picture.motifs:
        _kite(c)


def _mountain(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
    p = c.palette
    cold = picture.weather == "snow"
    paint_ridges(c, horizon, 4, 0.42, snow=cold or "snow" in picture.motifs or c.rng.random() < 0.5)
    hill(c, mix(p.land(0.55), SNOW, 0.4 if cold else 0.0), horizon + 0.1, 0.06, 1.1)
    blossom = "blossom" in picture.motifs
    for k in range(16):
        x = (k + 0.6 * c.rng.random()) / 16
        tone = mix(p.land(0.6), (240, 170, 190), 0.66) if blossom else None
        things.tree(
            c,
            x,
            horizon + 0.09 + 0.04 * c.rng.random(),
            0.1 + 0.07 * c.rng.random(),
            0.6,
            "round" if blossom else "pine",
            tone,
        )
    hill(c, mix(p.land(0.85), SNOW, 0.45 if cold else 0.0), horizon + 0.22, 0.07, 3.0)
    if "bridge" in picture.motifs:
        things.bridge(c, horizon + 0.2, 0.75, 0.3, 0.72)
    if "house" in picture.motifs or "temple" in picture.motifs:
        things.house(c, 0.7, horizon + 0.17, 0.17, 0.7)
    _trail(c, horizon + 0.2)
    del light


def _trail(c: Canvas, top: float, x: float = 0.52) -> None:
    p = c.palette
    left: list[tuple[float, float]] = []
    right: list[tuple[float, float]] = []
    for k in range(25):
        t = k / 24
        y = top + (1.02 - top) * t
        middle = x + 0.12 * math.sin(t * 4.2) * (1 - t * 0.4) - 0.1 * t
        width = 0.006 + 0.11 * t**1.7
        left.append((middle - width, y))
        right.append((middle + width, y))
    c.poly([*left, *reversed(right)], mix(p.land(0.7), (214, 190, 150), 0.4 if not p.dark else 0.12))


def _forest(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
    p, rng = c.palette, c.rng
    ground(c, picture, horizon, 0.3)
    for depth in (0.2, 0.4, 0.62):
        base = horizon + 0.06 + 0.3 * depth
        kind = "pine" if rng.random() < 0.55 else "round"
        autumn = mix(p.land(depth), (204, 120, 48), 0.55) if "leaf" in picture.motifs else None
        for k in range(15 - round(12 * depth)):
            things.tree(
                c,
                (k + 0.7 * rng.random()) / (14 - 12 * depth),
                base,
                (0.34 + 0.5 * depth) * (0.85 + 0.3 * rng.random()),
                depth,
                kind,
                autumn,
            )
        hill(c, p.land(depth + 0.1), base + 0.02, 0.012, depth * 9)
    for k in range(4):  # light falls in shafts
        x = light[0] + (k - 1.5) * 0.13
        c.poly([(x, 0), (x + 0.05, 0), (x + 0.24, 1), (x + 0.08, 1)], p.light, 20 if not p.dark else 9)
    _trail(c, horizon + 0.14, 0.5)


def _field(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
    p = c.palette
    paint_ridges(c, horizon, 2, 0.13)
    ground(c, picture, horizon)
    if picture.weather != "snow":
        gold = mix(p.land(0.8), (222, 178, 84), 0.5 if not p.dark else 0.14)
        for k in range(26):  # rows that run to one point
            x = (k - 13) * 0.11
            c.poly(
                [(0.5 + x * 0.12, horizon + 0.03), (0.5 + x * 1.2, 1.0), (0.5 + (x + 0.055) * 1.2, 1.0)],
                gold if k % 2 else scale_colour(gold, 0.9),
                120,
            )
    things.tree(c, 0.76, horizon + 0.09, 0.34, 0.65)
    things.house(c, 0.22, horizon + 0.05, 0.12, 0.5)
    if "flower" in picture.motifs:
        things.flowers(c, 150, horizon + 0.12, ((236, 120, 128), (250, 214, 130), (214, 190, 240)))
    if {"path", "bicycle"} & set(picture.motifs):
        _trail(c, horizon + 0.02)
    del light


def _garden(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
    p = c.palette
    paint_ridges(c, horizon, 1, 0.1)
    ground(c, picture, horizon, 0.5)
    wall = mix(p.land(0.6), (232, 224, 210), 0.5 if not p.dark else 0.14)
    c.box(0, horizon - 0.11, c.aspect, 0.17, wall)
    c.box(0, horizon - 0.125, c.aspect, 0.022, mix(p.land(0.8), (70, 70, 80), 0.5))
    c.oval(0.62, horizon - 0.01, 0.1, 0.1, mix(wall, p.near, 0.5))
    c.oval(0.62, horizon - 0.01, 0.085, 0.085, mix(p.land(0.5), p.horizon, 0.3))
    blossom = mix(p.land(0.7), (242, 168, 188), 0.66) if "blossom" in picture.motifs else None
    things.tree(c, 0.24, horizon + 0.16, 0.5, 0.78, "round", blossom)
    things.tree(c, 0.88, horizon + 0.1, 0.34, 0.7, "round", blossom)
    things.flowers(c, 130, horizon + 0.14, ((240, 140, 150), (252, 226, 150), (190, 170, 235), (250, 250, 250)))
    del light


def _village(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
    rng = c.rng
    snow = picture.weather == "snow"
    paint_ridges(c, horizon, 3, 0.24, snow=snow)
    ground(c, picture, horizon, 0.4)
    for row, (y, s, near) in enumerate(((0.03, 0.11, 0.36), (0.09, 0.16, 0.52), (0.19, 0.25, 0.74))):
        count = 9 - 2 * row
        for k in range(count):
            x = (k + 0.25 + 0.4 * rng.random()) / count
            if 0.4 < x < 0.58 and row:
                continue  # the way stays open
            if rng.random() < 0.26:
                things.tree(c, x, horizon + y, s * 1.2, near, "bare" if snow or "leaf" in picture.motifs else "round")
            else:
                things.house(c, x, horizon + y, s, near, tone=rng.random())
    if "lighthouse" in picture.motifs:
        things.lighthouse(c, 0.5, horizon + 0.03, 0.34, 0.6)
    if "temple" in picture.motifs or "bell" in picture.motifs:
        things.pagoda(c, 0.62, horizon + 0.02, 0.3, 0.45)
    _trail(c, horizon + 0.06, 0.5)
    del light


def _city(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
    p, rng = c.palette, c.rng
    for row, near in enumerate((0.16, 0.36, 0.62)):
        x = -0.02
        while x < 1.02:
            w, h = 0.04 + 0.05 * rng.random(), (0.2 + 0.42 * rng.random() ** 1.6) * (1 - 0.12 * row)
            top = horizon + 0.08 * row - h
            wall = p.land(near)
            c.box(x, top, w * c.aspect, h + 0.4, wall)
            if rng.random() < 0.3:
                c.line([(x + w / 2, top), (x + w / 2, top - 0.06)], wall, 0.004)
            for wy in range(int(h / 0.028)):
                for wx in range(int(w * c.aspect / 0.026)):
                    if rng.random() < (0.42 if p.dark else 0.2):
                        tone = p.window if p.dark else mix(wall, p.horizon, 0.35)
                        c.box(
                            x + (0.008 + 0.026 * wx) / c.aspect,
                            top + 0.012 + 0.028 * wy,
                            0.012,
                            0.014,
                            mix(wall, tone, 0.35 + 0.5 * near),
                        )
            x += w + 0.006
    ground(c, picture, 0.93, 0.9)
    del light


def _street(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
    """Two rows of houses that run to one point; lanterns where the text has them."""
    p, rng = c.palette, c.rng
    paint_ridges(c, horizon, 1, 0.08)
    stone = mix(p.land(0.72), (150, 144, 140), 0.32 if not p.dark else 0.12)
    c.gradient([(0, p.land(0.4)), (1, stone)], horizon, 1)
    vanish = (0.52, horizon - 0.02)
    for side in (0, 1):
        edge = 0.0 if side == 0 else 1.0
        for k in reversed(range(7)):
            t1, t2 = 0.93 * (k / 7) ** 0.62, 0.93 * ((k + 1) / 7) ** 0.62
            x1, x2 = edge + (vanish[0] - edge) * t1, edge + (vanish[0] - edge) * t2
            tall = 0.62 * (0.85 + 0.3 * rng.random())
            wall = mix(
                p.land(1 - 0.75 * t1), mix((220, 200, 172), (170, 118, 96), rng.random()), 0.34 if not p.dark else 0.1
            )
            if side:
                wall = scale_colour(wall, 0.88)
            y1, y2 = horizon - (tall - 0.02) * (1 - t1), horizon - (tall - 0.02) * (1 - t2)
            b1, b2 = horizon + 0.36 * (1 - t1) + 0.01, horizon + 0.36 * (1 - t2) + 0.01
            c.poly([(x1, y1), (x2, y2), (x2, b2), (x1, b1)], wall)
            over = -0.012 if side == 0 else 0.012
            c.poly(
                [(x1, y1), (x2 - over, y2), (x2 - over, y2 + 0.03 * (1 - t2)), (x1, y1 + 0.04 * (1 - t1))],
                scale_colour(p.land(1 - 0.6 * t1), 0.8),
            )
            for floor in (0.26, 0.56):
                for wx in (0.25, 0.62):
                    a1, a2 = x1 + (x2 - x1) * wx, x1 + (x2 - x1) * (wx + 0.2)
                    s1, s2 = 1 - (t1 + (t2 - t1) * wx), 1 - (t1 + (t2 - t1) * (wx + 0.2))
                    top1, top2 = horizon - (tall * (1 - floor) - 0.02) * s1, horizon - (tall * (1 - floor) - 0.02) * s2
                    pane = p.window if p.dark and rng.random() < 0.7 else mix(scale_colour(wall, 0.5), p.middle, 0.25)
                    c.poly([(a1, top1), (a2, top2), (a2, top2 + 0.11 * s2), (a1, top1 + 0.11 * s1)], pane)
    for k in range(16):
        t = (k / 16) ** 1.8
        y = horizon + 0.012 + (1 - horizon) * t
        c.line([(0.5 - 0.5 * t - 0.02, y), (0.54 + 0.5 * t, y)], scale_colour(stone, 0.86), 0.002 + 0.003 * t, 120)
    if picture.weather in {"rain", "storm"} or p.dark:
        for k in range(5):
            c.glow(0.3 + 0.1 * k, horizon + 0.12 + 0.07 * k, 0.16, p.window, 0.3, flat=0.4)
    if "lamp" in picture.motifs:
        for k in range(5):
            t = 0.16 + 0.16 * k
            things.lantern(c, 0.04 + 0.46 * t, horizon - 0.26 * (1 - t), 0.1 * (1 - t) + 0.012)
            things.lantern(c, 0.97 - 0.43 * t, horizon - 0.28 * (1 - t), 0.1 * (1 - t) + 0.012)
    elif p.dark:
        for x, s in ((0.2, 0.36), (0.84, 0.4), (0.42, 0.15)):
            things.lamp_post(c, x, horizon + 0.5 * s + 0.02, s, 0.8)
    del light


def _road(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
    p = c.palette
    paint_ridges(c, horizon, 3, 0.2, snow=picture.weather == "snow")
    ground(c, picture, horizon)
    hill(c, mix(p.land(0.6), SNOW, 0.5 if picture.weather == "snow" else 0), horizon + 0.08, 0.03, 2.0)
    _trail(c, horizon + 0.05, 0.54)
    for k in range(6):
        t = k / 6
        things.tree(
            c,
            0.18 - 0.02 * k + 0.26 * t,
            horizon + 0.24 - 0.19 * t,
            0.42 - 0.3 * t,
            0.8 - 0.4 * t,
            "bare" if "leaf" in picture.motifs else "round",
        )
    del light


def _station(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
    p = c.palette
    paint_ridges(c, horizon, 2, 0.14)
    ground(c, picture, horizon, 0.5)
    things.train(c, horizon + 0.12, 0.34, 0.7)
    for k in (0.16, 0.2):
        c.line([(0, horizon + k), (1, horizon + k - 0.02)], mix(p.land(0.9), p.light, 0.35), 0.006)
    platform = mix(p.land(0.8), (170, 160, 150), 0.3 if not p.dark else 0.1)
    c.poly([(0, horizon + 0.26), (1, horizon + 0.22), (1, 1), (0, 1)], platform)
    c.line([(0, horizon + 0.275), (1, horizon + 0.235)], mix(platform, (250, 230, 150), 0.5), 0.008)
    for x in (0.14, 0.5, 0.86):
        c.line([(x, horizon + 0.34), (x, horizon - 0.32)], scale_colour(p.near, 1.0), 0.014)
    c.poly(
        [(0, horizon - 0.34), (1, horizon - 0.38), (1, horizon - 0.3), (0, horizon - 0.27)],
        mix(p.land(0.9), (80, 60, 60), 0.4),
    )
    if p.dark:
        for x in (0.32, 0.68):
            c.glow(x, horizon - 0.24, 0.34, p.window, 0.6)
    del light


def _desert(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
    p = c.palette
    for k in range(4):
        sand = mix(p.land(0.25 + 0.2 * k), (226, 176, 116), 0.5 if not p.dark else 0.16)
        hill(c, sand, horizon + (0.1 * k or -0.05), 0.05 + 0.012 * k, k * 1.9 + c.rng.random())
    del light, picture


def _temple(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
    p = c.palette
    paint_ridges(c, horizon, 4, 0.34, snow=picture.weather == "snow")
    hill(c, p.land(0.6), horizon + 0.1, 0.05, 0.8)
    things.pagoda(c, 0.6, horizon + 0.09, 0.42, 0.6)
    for k in range(10):
        things.tree(c, 0.05 + 0.1 * k, horizon + 0.13 + 0.03 * c.rng.random(), 0.2 + 0.1 * c.rng.random(), 0.72, "pine")
    hill(c, p.land(0.9), horizon + 0.26, 0.05, 2.6)
    _trail(c, horizon + 0.22, 0.56)
    del light


def _kite(c: Canvas) -> None:
    x, y, a = 0.66, 0.2, c.aspect
    c.poly([(x, y - 0.06), (x + 0.045 / a, y), (x, y + 0.075), (x - 0.045 / a, y)], (206, 70, 60))
    c.line(
        [(x, y + 0.075), (x - 0.03, y + 0.2), (x - 0.02, y + 0.33), (x - 0.09, y + 0.5)],
        mix(c.palette.near, c.palette.horizon, 0.3),
        0.003,
    )


_Painter = Callable[[Canvas, Picture, float, tuple[float, float]], None]
_PLACES: dict[str, tuple[_Painter, float]] = {
    "sea": (sea, 0.56),
    "harbour": (harbour, 0.56),
    "island": (island, 0.58),
    "lake": (lake, 0.58),
    "river": (river, 0.52),
    "mountain": (_mountain, 0.6),
    "forest": (_forest, 0.5),
    "field": (_field, 0.6),
    "garden": (_garden, 0.5),
    "village": (_village, 0.56),
    "city": (_city, 0.72),
    "street": (_street, 0.56),
    "road": (_road, 0.58),
    "station": (_station, 0.5),
    "desert": (_desert, 0.54),
    "temple": (_temple, 0.6),
}
