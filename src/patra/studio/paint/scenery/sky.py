"""Paints sky, sun or moon, stars, clouds and far ridges (B6)."""

from itertools import pairwise

import numpy as np

from patra.studio.paint.canvas import Canvas, noise, ridge
from patra.studio.paint.palette import Colour, mix
from patra.studio.script.shots import Picture


def paint_sky(c: Canvas, picture: Picture, horizon: float) -> tuple[float, float]:
    """Everything above the horizon; gives where the sun or moon stands."""
    p = c.palette
    c.gradient([(0, p.top), (0.55, p.middle), (1, p.horizon)], 0, min(1, horizon + 0.02))
    place = _stars_and_light(c, picture, horizon)
    _clouds(c, picture, horizon)
    return place


def _stars_and_light(c: Canvas, picture: Picture, horizon: float) -> tuple[float, float]:
    p = c.palette
    veiled = picture.weather in {"rain", "storm", "fog", "snow"}
    night = picture.time == "night"
    x = 0.26 + 0.5 * c.rng.random()
    y = {"dawn": 0.80, "dusk": 0.76, "morning": 0.46, "day": 0.24, "night": 0.3}.get(picture.time, 0.3) * horizon
    if night and not (veiled and picture.weather != "snow") and "star" not in picture.absent:
        for _ in range(170):
            sx, sy, size = c.rng.random(), c.rng.random() ** 1.4 * horizon * 0.92, c.rng.random()
            c.oval(
                sx,
                sy,
                0.0009 + 0.0016 * size**3,
                0.0009 + 0.0016 * size**3,
                mix(p.middle, (255, 252, 240), 0.35 + 0.6 * size),
            )
    shows = not veiled or {"moon", "sun"} & set(picture.motifs)
    if ("moon" if night else "sun") in picture.absent:
        return x, y
    strength = 0.3 if veiled else 0.85
    if night:
        if shows:
            c.glow(x, y, 0.42, (120, 140, 190), 0.5 * strength)
            c.oval(x, y, 0.048, 0.048, mix(p.light, p.middle, 0.25 if veiled else 0.0))
            for dx, dy, r in ((-0.012, -0.008, 0.011), (0.016, 0.012, 0.008), (0.003, 0.022, 0.006)):
                c.oval(x + dx / c.aspect, y + dy, r, r, mix(p.light, p.middle, 0.22))
    else:
        reach = 0.75 if picture.time in {"dawn", "dusk"} else 0.5
        c.glow(x, y, reach, p.light, strength)
        if shows:
            c.glow(x, y, 0.2, (255, 250, 230), strength)
            c.oval(x, y, 0.04, 0.04, mix(p.light, (255, 255, 250), 0.55))
    return x, y


def _clouds(c: Canvas, picture: Picture, horizon: float) -> None:
    p = c.palette
    amount = {"clear": 0.56, "wind": 0.48, "rain": 0.34, "storm": 0.3, "snow": 0.4, "fog": 0.5}.get(
        picture.weather, 0.55
    )
    width, height = 320, 180
    field = noise(width, height, c.seed, scale=3, octaves=5, stretch=3.4)
    rows = np.linspace(0, 1 / max(horizon, 0.2), height, dtype=np.float32)[:, None]
    fade = np.clip(1.15 - rows, 0, 1) * np.clip(rows * 5, 0, 1)
    mask = np.clip((field - amount) * 3.2, 0, 0.85) * fade
    heavy = picture.weather in {"rain", "storm"}
    lit: Colour = mix(p.horizon, p.light, 0.55) if not heavy else mix(p.middle, p.top, 0.45)
    dark = mix(p.middle, p.top, 0.5)
    if picture.time == "night":
        lit, dark = mix(p.middle, p.horizon, 0.5), mix(p.top, p.middle, 0.4)
    c.veil(np.roll(mask, 5, axis=0) * 0.7, dark)
    c.veil(mask * 0.75, lit)


def paint_ridges(c: Canvas, horizon: float, count: int = 3, height: float = 0.22, *, snow: bool = False) -> None:
    """Ranges of mountains or hills, each nearer and darker than the one behind."""
    p = c.palette
    for number in range(count):
        near = 0.08 + 0.34 * number / max(1, count - 1)
        line = ridge(c.rng, 129, 0.54)
        top = height * (1 - 0.24 * number)
        base = horizon + 0.012 * number
        points = [(k / (len(line) - 1), base - top * (0.25 + 0.75 * v) + 0.015 * number) for k, v in enumerate(line)]
        colour = p.land(near)
        c.poly([*points, (1, 1), (0, 1)], colour)
        if snow and number < 2:
            _caps(c, points, base, top, mix(colour, (250, 250, 255), 0.72 if not p.dark else 0.4))
    _mist(c, horizon)


def _caps(c: Canvas, points: list[tuple[float, float]], base: float, top: float, colour: Colour) -> None:
    line = base - top * 0.66
    for (x1, y1), (x2, y2) in pairwise(points):
        if y1 < line or y2 < line:
            jag = c.rng.random() * 0.018
            c.poly([(x1, y1), (x2, y2), (x2, min(line, y2 + 0.03 + jag)), (x1, min(line, y1 + 0.03 + jag))], colour)


def _mist(c: Canvas, horizon: float) -> None:
    """Haze at the foot of the ridges."""
    rows = np.linspace(0, 1, 120, dtype=np.float32)[:, None]
    band = np.exp(-(((rows - horizon) / 0.07) ** 2)) * (0.3 + 0.25 * min(1.0, c.palette.haze))
    c.veil(np.repeat(band, 8, axis=1), c.palette.horizon)
