"""Places by the water: sea, harbour, island, lake, river."""

import math

from patra.studio.paint import things
from patra.studio.paint.canvas import Canvas
from patra.studio.paint.palette import mix, scale_colour
from patra.studio.paint.scenery.sky import paint_ridges
from patra.studio.paint.scenery.terrain import SNOW, ground, water
from patra.studio.script.shots import Picture


def sea(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
    if c.rng.random() < 0.6:
        paint_ridges(c, horizon, 2, 0.07)
    rough = 1.7 if picture.weather in {"wind", "storm"} else 1.0
    water(c, horizon, light, rough=rough)
    if "lighthouse" in picture.motifs or ("lamp" in picture.motifs and c.palette.dark):
        things.lighthouse(c, 0.8, horizon + 0.035, 0.3, 0.55)
    if picture.weather in {"wind", "storm"}:
        for depth in (0.12, 0.26, 0.42, 0.6, 0.8):
            _crest(c, horizon + (1 - horizon) * depth, 0.006 + 0.034 * depth, depth)
    boats(c, picture, horizon)
    if picture.framing != "medium":
        shore(c, picture)


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


def shore(c: Canvas, picture: Picture) -> None:
    p = c.palette
    sand = mix(p.land(0.75), (206, 180, 140), 0.42 if not p.dark else 0.12)
    line = [(k / 40, 0.93 - 0.05 * math.sin(k / 40 * 2.2 + 0.4) - 0.008 * math.sin(k * 0.9)) for k in range(41)]
    c.poly([*((x, y - 0.016) for x, y in line), (1, 1), (0, 1)], mix(p.horizon, (250, 252, 255), 0.45), 150)
    c.poly([*line, (1, 1), (0, 1)], sand if picture.weather != "snow" else mix(sand, SNOW, 0.6))


def boats(c: Canvas, picture: Picture, horizon: float) -> None:
    if "boat" not in picture.motifs and picture.place != "harbour":
        return
    small = picture.framing == "medium"
    if "boat" in picture.motifs and picture.place in {"sea", "river", "lake", "island"}:
        if not small and not picture.figures:  # who is there sits in a boat of their own
            things.boat(c, 0.36, horizon + 0.17, 0.27, 0.8)
        things.boat(c, 0.72, horizon + 0.045, 0.08, 0.35)


def harbour(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
    p = c.palette
    paint_ridges(c, horizon, 2, 0.14, snow=picture.weather == "snow")
    line = [(0.0, horizon - 0.05), (0.18, horizon - 0.06), (0.4, horizon - 0.02), (0.52, horizon + 0.006)]
    c.poly([*line, (0, horizon + 0.02)], p.land(0.4))
    for k in range(9):
        x = 0.012 + 0.052 * k
        things.house(c, x, horizon - 0.04 + 0.0048 * k, 0.085 + 0.03 * c.rng.random(), 0.44, tone=c.rng.random())
    water(c, horizon + 0.012, light)
    if "lighthouse" in picture.motifs:
        things.lighthouse(c, 0.82, horizon + 0.045, 0.34, 0.6)
    pier = mix(p.land(0.85), (96, 70, 52), 0.3)
    c.poly([(0.3, 1.0), (0.56, 1.0), (0.795, horizon + 0.055), (0.775, horizon + 0.055)], pier)
    for k in range(14):
        t = (k / 14) ** 0.7
        y = 1.0 + (horizon + 0.055 - 1.0) * t
        left, right = 0.3 + (0.775 - 0.3) * t, 0.56 + (0.795 - 0.56) * t
        c.line([(left, y), (right, y)], scale_colour(pier, 0.78), 0.004 * (1.1 - t))
        for x in (left, right):
            c.line([(x, y), (x, y + 0.06 * (1.1 - t))], scale_colour(pier, 0.6), 0.014 * (1.1 - t))
    for x, dy, s in ((0.15, 0.13, 0.17), (0.29, 0.08, 0.12), (0.62, 0.05, 0.08), (0.93, 0.22, 0.22)):
        things.boat(c, x, horizon + dy, s, 0.5 + 1.2 * dy, sail=False)


def island(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
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
    boats(c, picture, horizon)
    shore(c, picture)


def lake(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
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
    boats(c, picture, horizon)


def river(c: Canvas, picture: Picture, horizon: float, light: tuple[float, float]) -> None:
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
        scale_colour(bank, 0.9),
    )
    for x, y, s in ((0.06, 0.1, 0.3), (0.17, 0.07, 0.22), (0.9, 0.09, 0.3), (0.8, 0.06, 0.16), (0.98, 0.16, 0.36)):
        colour = mix(p.land(0.6), (238, 168, 186), 0.6) if "blossom" in picture.motifs else None
        things.tree(c, x, horizon + y, s, 0.62, "round", colour)
    if "bridge" in picture.motifs:
        things.bridge(c, horizon + 0.17, 0.7)
    else:
        things.house(c, 0.26, horizon + 0.05, 0.1, 0.5)
    boats(c, picture, horizon)
