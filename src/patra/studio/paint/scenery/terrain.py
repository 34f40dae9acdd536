"""What places share: ground, hills, water."""

import math

from patra.studio.paint.canvas import Canvas
from patra.studio.paint.palette import Colour, mix
from patra.studio.script.shots import Picture

SNOW: Colour = (236, 240, 248)


def ground(c: Canvas, picture: Picture, top: float, near_top: float = 0.45) -> None:
    p = c.palette
    far, close = p.land(near_top), p.land(1.0)
    if picture.weather == "snow":
        share = 0.7 if not p.dark else 0.36
        far, close = mix(far, SNOW, share), mix(close, SNOW, share - 0.12)
    elif "leaf" in picture.motifs:
        far, close = mix(far, (196, 128, 58), 0.3), mix(close, (150, 84, 44), 0.3)
    c.gradient([(0, far), (1, close)], top, 1.0)


def toned_land(c: Canvas, colour: Colour, nearness: float = 0.7, share: float = 0.6) -> Colour:
    """A colour of its own in the light of the hour."""
    return mix(c.palette.land(nearness), colour, share if not c.palette.dark else share * 0.32)


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
