"""An outdoor picture goes in; its place is on the canvas afterwards: sea, harbour, river, forest, village, street
(B6).
"""

import math
from collections.abc import Callable

from patra.studio.paint import things
from patra.studio.paint.canvas import Canvas
from patra.studio.paint.palette import Colour, mix, scaled
from patra.studio.paint.sky import paint_ridges, paint_sky
from patra.studio.script.shots import Picture

SNOW: Colour = (236, 240, 248)


def paint_place(c: Canvas, picture: Picture) -> None:
    painter, horizon = _PLACES.get(picture.place, (_field, 0.62))
    light = paint_sky(c, picture, horizon)
    painter(c, picture, horizon, light)
    if "bird" in picture.motifs:
        things.birds(c, 0.36 + 0.3 * c.rng.random(), horizon * 0.42, 9)
    if "kite" in picture.motifs:
        _kite(c)


def ground(c: Canvas, picture: Picture, top: float, near_top: float = 0.45) -> None:
    p = c.palette
    far, close = p.land(near_top), p.land(1.0)
    if picture.weather == "snow":
        share = 0.7 if not p.dark else 0.36
        far, close = mix(far, SNOW, share), mix(close, SNOW, share - 0.12)
    elif "leaf" in picture.motifs:
        far, close = mix(far, (196, 128, 58), 0.3), mix(close, (150, 84, 44), 0.3)
    c.gradient([(0, far), (1, close)], top, 1.0)


def hill(c: Canvas, colour: Colour, y: float, swell: float, phase: float) -> None:
    line = [
        (k / 48, y - swell * math.sin(k / 48 * 3.3 + phase) - 0.3 * swell * math.sin(k / 48 * 7.7 + 2 * phase))
        for k in range(49)
    ]
    c.poly([*line, (1, 1), (0, 1)], colour)


def water(c: Canvas, top: float, light: tuple[float, float], *, bottom: float = 1.0, rough: float = 1.0) -> None:
    """A sheet of water with the light on it and waves that grow towards us."""
    p, rng = c.palette, c.rng
    c.gradient([(0, p.water(0)), (0.35, p.water(0.55)), (1, p.water(1))], top, bottom)
    c.glow(light[0], top, 0.5, p.light, 0.5, flat=0.6)
    for k in range(round(150 * rough)):
        depth = rng.random() ** 1.6
        y = top + (bottom - top) * depth
        length = (0.01 + 0.09 * depth) * (0.5 + rng.random())
        x = rng.random() * 1.1 - 0.05
        tone = mix(p.water(depth), p.horizon if k % 3 else p.near, 0.22 + 0.18 * rng.random())
        c.line(
            [(x, y), (x + length / 2, y - 0.0026 * rough * (1 + 2 * depth)), (x + length, y)],
            tone,
            0.0016 + 0.0034 * depth,
        )
    for _ in range(90):  # the gleam below sun or moon
        depth = rng.random() ** 1.3
        y = top + (bottom - top) * depth
        x = light[0] + (rng.random() - 0.5) * (0.03 + 0.16 * depth)
        length = 0.006 + 0.03 * depth * rng.random()
        c.line([(x - length, y), (x + length, y)], mix(p.water(depth), p.light, 0.62), 0.0016 + 0.003 * depth)


def _sea(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
    if c.rng.random() < 0.6:
        paint_ridges(c, horizon, 2, 0.07)
    rough = 1.7 if picture.weather in {"wind", "storm"} else 1.0
    water(c, horizon, light, rough=rough)
    if "lighthouse" in picture.motifs or ("lamp" in picture.motifs and c.palette.dark):
        things.lighthouse(c, 0.8, horizon + 0.035, 0.3, 0.55)
    if picture.weather in {"wind", "storm"}:
        for depth in (0.12, 0.26, 0.42, 0.6, 0.8):
            _crest(c, horizon + (1 - horizon) * depth, 0.006 + 0.034 * depth, depth)
    _boats(c, picture, horizon)
    if picture.framing != "medium":
        _shore(c, picture)


def _crest(c: Canvas, y: float, swell: float, depth: float) -> None:
    p, phase, many = c.palette, c.rng.random() * 6, 16 - 9 * depth
    line = [
        (
            k / 90,
            y - swell * (0.6 * math.sin(k / 90 * many + phase) + 0.4 * math.sin(k / 90 * many * 2.3 + 2 * phase)) ** 2,
        )
        for k in range(91)
    ]
    c.poly([*line, (1, y + 0.05 + 0.1 * depth), (0, y + 0.05 + 0.1 * depth)], mix(p.water(depth), p.near, 0.1), 190)
    high = [point for point in line if y - point[1] > swell * 0.45]
    for x, top in high:
        c.line(
            [(x - 0.007, top + 0.004), (x + 0.007, top + 0.004)],
            mix(p.horizon, (250, 252, 255), 0.5),
            0.003 + 0.003 * depth,
            200,
        )


def _shore(c: Canvas, picture: Picture) -> None:
    p = c.palette
    sand = mix(p.land(0.75), (206, 180, 140), 0.42 if not p.dark else 0.12)
    line = [(k / 40, 0.93 - 0.05 * math.sin(k / 40 * 2.2 + 0.4) - 0.008 * math.sin(k * 0.9)) for k in range(41)]
    c.poly([*((x, y - 0.016) for x, y in line), (1, 1), (0, 1)], mix(p.horizon, (250, 252, 255), 0.45), 150)
    c.poly([*line, (1, 1), (0, 1)], sand if picture.weather != "snow" else mix(sand, SNOW, 0.6))


def _boats(c: Canvas, picture: Picture, horizon: float) -> None:
    if "boat" not in picture.motifs and picture.place != "harbour":
        return
    small = picture.framing == "medium"
    if "boat" in picture.motifs and picture.place in {"sea", "river", "lake", "island"}:
        if not small and not picture.figures:  # who is there sits in a boat of their own
            things.boat(c, 0.36, horizon + 0.17, 0.27, 0.8)
        things.boat(c, 0.72, horizon + 0.045, 0.08, 0.35)


def _harbour(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
    p = c.palette
    paint_ridges(c, horizon, 2, 0.14, snow=picture.weather == "snow")
    line = [(0.0, horizon - 0.05), (0.18, horizon - 0.06), (0.4, horizon - 0.02), (0.52, horizon + 0.006)]
    c.poly([*line, (0, horizon + 0.02)], p.land(0.4))
    for k in range(9):
        x = 0.012 + 0.052 * k
        things.house(c, x, horizon - 0.04 + 0.0048 * k, 0.085 + 0.03 * c.rng.random(), 0.44, tone=c.rng.random())
    water(c, horizon + 0.012, light)
    things.lighthouse(c, 0.82, horizon + 0.045, 0.34, 0.6)
    pier = mix(p.land(0.85), (96, 70, 52), 0.3)
    c.poly([(0.3, 1.0), (0.56, 1.0), (0.795, horizon + 0.055), (0.775, horizon + 0.055)], pier)
    for k in range(14):
        t = (k / 14) ** 0.7
        y = 1.0 + (horizon + 0.055 - 1.0) * t
        left, right = 0.3 + (0.775 - 0.3) * t, 0.56 + (0.795 - 0.56) * t
        c.line([(left, y), (right, y)], scaled(pier, 0.78), 0.004 * (1.1 - t))
        for x in (left, right):
            c.line([(x, y), (x, y + 0.06 * (1.1 - t))], scaled(pier, 0.6), 0.014 * (1.1 - t))
    for x, dy, s in ((0.15, 0.13, 0.17), (0.29, 0.08, 0.12), (0.62, 0.05, 0.08), (0.93, 0.22, 0.22)):
        things.boat(c, x, horizon + dy, s, 0.5 + 1.2 * dy, sail=False)


def _island(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
    water(c, horizon, light)
    p = c.palette
    line = [
        (0.3 + 0.4 * k / 30, horizon + 0.03 - 0.17 * math.sin(math.pi * k / 30) ** 1.4 - 0.012 * math.sin(k * 1.7))
        for k in range(31)
    ]
    c.poly([*line, (0.74, horizon + 0.05), (0.26, horizon + 0.05)], p.land(0.5))
    for k in range(9):
        things.tree(c, 0.38 + 0.03 * k, horizon - 0.06 - 0.05 * math.sin(k * 0.35), 0.11, 0.55)
    if "lighthouse" in picture.motifs:
        things.lighthouse(c, 0.56, horizon - 0.1, 0.26, 0.6)
    _boats(c, picture, horizon)
    _shore(c, picture)


def _lake(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
    paint_ridges(c, horizon, 3, 0.3, snow=picture.weather == "snow")
    water(c, horizon + 0.02, light, rough=0.6)
    for side in (0.02, 0.93):
        for k in range(5):
            things.tree(
                c,
                side + 0.03 * k * (1 if side < 0.5 else -0.6),
                horizon + 0.05 + 0.01 * k,
                0.2 + 0.1 * c.rng.random(),
                0.6,
                "pine",
            )
    _boats(c, picture, horizon)


def _river(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
    p = c.palette
    paint_ridges(c, horizon, 3, 0.2)
    ground(c, picture, horizon, 0.4)
    water(c, horizon + 0.05, light, rough=0.7)
    bank = p.land(0.62)
    if picture.weather == "snow":
        bank = mix(bank, SNOW, 0.5)
    c.poly(
        [(0, horizon + 0.02), (0.5, horizon + 0.035), (0.3, horizon + 0.09), (0.1, horizon + 0.2), (0, horizon + 0.36)],
        bank,
    )
    c.poly(
        [
            (1, horizon + 0.015),
            (0.62, horizon + 0.035),
            (0.78, horizon + 0.1),
            (0.93, horizon + 0.24),
            (1, horizon + 0.4),
        ],
        scaled(bank, 0.9),
    )
    for x, y, s in ((0.06, 0.1, 0.3), (0.17, 0.07, 0.22), (0.9, 0.09, 0.3), (0.8, 0.06, 0.16), (0.98, 0.16, 0.36)):
        colour = mix(p.land(0.6), (238, 168, 186), 0.6) if "blossom" in picture.motifs else None
        things.tree(c, x, horizon + y, s, 0.62, "round", colour)
    if "bridge" in picture.motifs:
        things.bridge(c, horizon + 0.17, 0.7)
    else:
        things.house(c, 0.26, horizon + 0.05, 0.1, 0.5)
    _boats(c, picture, horizon)


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
                gold if k % 2 else scaled(gold, 0.9),
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
                wall = scaled(wall, 0.88)
            y1, y2 = horizon - (tall - 0.02) * (1 - t1), horizon - (tall - 0.02) * (1 - t2)
            b1, b2 = horizon + 0.36 * (1 - t1) + 0.01, horizon + 0.36 * (1 - t2) + 0.01
            c.poly([(x1, y1), (x2, y2), (x2, b2), (x1, b1)], wall)
            over = -0.012 if side == 0 else 0.012
            c.poly(
                [(x1, y1), (x2 - over, y2), (x2 - over, y2 + 0.03 * (1 - t2)), (x1, y1 + 0.04 * (1 - t1))],
                scaled(p.land(1 - 0.6 * t1), 0.8),
            )
            for floor in (0.26, 0.56):
                for wx in (0.25, 0.62):
                    a1, a2 = x1 + (x2 - x1) * wx, x1 + (x2 - x1) * (wx + 0.2)
                    s1, s2 = 1 - (t1 + (t2 - t1) * wx), 1 - (t1 + (t2 - t1) * (wx + 0.2))
                    top1, top2 = horizon - (tall * (1 - floor) - 0.02) * s1, horizon - (tall * (1 - floor) - 0.02) * s2
                    pane = p.window if p.dark and rng.random() < 0.7 else mix(scaled(wall, 0.5), p.middle, 0.25)
                    c.poly([(a1, top1), (a2, top2), (a2, top2 + 0.11 * s2), (a1, top1 + 0.11 * s1)], pane)
    for k in range(16):
        t = (k / 16) ** 1.8
        y = horizon + 0.012 + (1 - horizon) * t
        c.line([(0.5 - 0.5 * t - 0.02, y), (0.54 + 0.5 * t, y)], scaled(stone, 0.86), 0.002 + 0.003 * t, 120)
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
        c.line([(x, horizon + 0.34), (x, horizon - 0.32)], scaled(p.near, 1.0), 0.014)
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
        hill(c, sand, horizon + 0.1 * k, 0.05 + 0.012 * k, k * 1.9 + c.rng.random())
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
    "sea": (_sea, 0.56),
    "harbour": (_harbour, 0.56),
    "island": (_island, 0.58),
    "lake": (_lake, 0.58),
    "river": (_river, 0.52),
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
