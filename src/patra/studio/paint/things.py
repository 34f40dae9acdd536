"""Draws a boat, a house, a tree, a lighthouse … at a place of a canvas, in a size (B6)."""

import math

from patra.studio.paint.canvas import Canvas
from patra.studio.paint.palette import Colour, mix, scale_colour


def boat(c: Canvas, x: float, y: float, s: float, near: float, *, sail: bool = True) -> None:
    p, a = c.palette, c.aspect
    hull = mix(p.land(near), (120, 60, 44), 0.35 if not p.dark else 0.18)
    c.poly(
        [
            (x - 0.5 * s / a, y - 0.13 * s),
            (x + 0.55 * s / a, y - 0.17 * s),
            (x + 0.4 * s / a, y + 0.06 * s),
            (x - 0.36 * s / a, y + 0.06 * s),
        ],
        hull,
    )
    c.poly(
        [
            (x - 0.5 * s / a, y - 0.13 * s),
            (x + 0.55 * s / a, y - 0.17 * s),
            (x + 0.53 * s / a, y - 0.12 * s),
            (x - 0.48 * s / a, y - 0.09 * s),
        ],
        mix(hull, p.light, 0.35),
    )
    dark = scale_colour(hull, 0.6)
    c.line([(x, y - 0.15 * s), (x, y - 1.05 * s)], dark, 0.022 * s)
    if sail:
        cloth = mix(mix(p.horizon, (245, 236, 215), 0.6), p.near, 0.35 if p.dark else 0.04)
        c.poly(
            [(x + 0.03 * s / a, y - 1.0 * s), (x + 0.46 * s / a, y - 0.28 * s), (x + 0.03 * s / a, y - 0.24 * s)], cloth
        )
        c.poly(
            [(x - 0.03 * s / a, y - 0.92 * s), (x - 0.34 * s / a, y - 0.28 * s), (x - 0.03 * s / a, y - 0.24 * s)],
            mix(cloth, p.near, 0.18),
        )
    else:
        c.line([(x - 0.42 * s / a, y - 0.15 * s), (x, y - 0.95 * s), (x + 0.48 * s / a, y - 0.18 * s)], dark, 0.008 * s)
    for k in range(5):  # its reflection breaks up downwards
        w = 0.34 * s * (1 - k * 0.14)
        c.box(
            x - w / a + 0.02 * math.sin(k * 2.1) * s / a,
            y + (0.08 + 0.06 * k) * s,
            2 * w,
            0.018 * s,
            mix(hull, p.water(0.7), 0.35 + 0.1 * k),
            150,
        )


def rowboat(c: Canvas, x: float, y: float, s: float, near: float) -> None:
    p, a = c.palette, c.aspect
    hull = mix(p.land(near), (110, 64, 40), 0.3)
    c.poly(
        [
            (x - 0.75 * s / a, y - 0.22 * s),
            (x - 0.5 * s / a, y - 0.14 * s),
            (x + 0.5 * s / a, y - 0.14 * s),
            (x + 0.8 * s / a, y - 0.26 * s),
            (x + 0.52 * s / a, y + 0.1 * s),
            (x - 0.48 * s / a, y + 0.1 * s),
        ],
        hull,
    )
    c.line([(x - 0.2 * s / a, y - 0.3 * s), (x - 0.95 * s / a, y + 0.14 * s)], scale_colour(hull, 0.75), 0.03 * s)
    c.line([(x - 0.72 * s / a, y - 0.19 * s), (x + 0.76 * s / a, y - 0.2 * s)], mix(hull, p.light, 0.3), 0.025 * s)


def lighthouse(c: Canvas, x: float, base: float, s: float, near: float, *, beam: bool = True) -> None:
    p, a = c.palette, c.aspect
    rock = p.land(near)
    c.poly(
        [
            (x - 0.55 * s / a, base + 0.03 * s),
            (x - 0.3 * s / a, base - 0.1 * s),
            (x + 0.28 * s / a, base - 0.12 * s),
            (x + 0.6 * s / a, base + 0.03 * s),
        ],
        rock,
    )
    white = mix(mix((244, 238, 228), p.horizon, 0.25), p.near, 0.42 if p.dark else 0.05)
    shade = mix(white, p.near, 0.35)
    top = base - 1.12 * s
    c.poly(
        [
            (x - 0.15 * s / a, base - 0.08 * s),
            (x - 0.095 * s / a, top),
            (x + 0.095 * s / a, top),
            (x + 0.15 * s / a, base - 0.08 * s),
        ],
        white,
    )
    c.poly(
        [
            (x + 0.02 * s / a, base - 0.08 * s),
            (x + 0.02 * s / a, top),
            (x + 0.095 * s / a, top),
            (x + 0.15 * s / a, base - 0.08 * s),
        ],
        shade,
    )
    red = mix((172, 62, 52), p.near, 0.45 if p.dark else 0.12)
    for k in (0.3, 0.66):
        y1, y2 = base - 0.08 * s - k * 1.04 * s, base - 0.08 * s - (k + 0.15) * 1.04 * s
        w1, w2 = 0.15 - 0.055 * k, 0.15 - 0.055 * (k + 0.15)
        c.poly([(x - w1 * s / a, y1), (x + w1 * s / a, y1), (x + w2 * s / a, y2), (x - w2 * s / a, y2)], red)
    c.box(x - 0.13 * s / a, top - 0.02 * s, 0.26 * s, 0.04 * s, scale_colour(red, 0.7))
    c.box(x - 0.075 * s / a, top - 0.15 * s, 0.15 * s, 0.13 * s, p.window if p.dark else mix(p.middle, p.light, 0.4))
    c.poly([(x - 0.11 * s / a, top - 0.15 * s), (x, top - 0.27 * s), (x + 0.11 * s / a, top - 0.15 * s)], red)
    for k in (0.2, 0.52, 0.86):
        c.box(
            x - 0.02 * s / a,
            base - 0.08 * s - k * s,
            0.04 * s,
            0.07 * s,
            p.window if p.dark else scale_colour(shade, 0.6),
        )
    if p.dark and beam:
        y = top - 0.085 * s
        for spread, alpha in ((0.16, 26), (0.09, 34), (0.045, 44)):
            c.poly([(x, y), (x - 1.3, y - spread * 1.4 - 0.12), (x - 1.3, y + spread * 1.4 - 0.12)], p.window, alpha)
            c.poly([(x, y), (x + 1.3, y - spread + 0.06), (x + 1.3, y + spread + 0.06)], p.window, alpha // 2)
        c.glow(x, y, 0.34 * s + 0.06, p.window, 0.95)


def house(
    c: Canvas, x: float, base: float, s: float, near: float, *, lit: bool | None = None, tone: float = 0.0
) -> None:
    p, a = c.palette, c.aspect
    wall = mix(p.land(near), mix((224, 202, 170), (190, 120, 92), tone), 0.5 if not p.dark else 0.17)
    roof = mix(p.land(min(1, near + 0.12)), (128, 62, 52), 0.4 if not p.dark else 0.16)
    w, h = 0.8 * s, 0.52 * s
    c.box(x - w / 2 / a, base - h, w, h, wall)
    c.poly(
        [(x + w * 0.18 / a, base - h), (x + w / 2 / a, base - h), (x + w / 2 / a, base), (x + w * 0.18 / a, base)],
        scale_colour(wall, 0.84),
    )
    c.box(x + w * 0.2 / a, base - h - 0.46 * s, 0.1 * s, 0.3 * s, scale_colour(roof, 0.8))
    c.poly(
        [
            (x - w * 0.6 / a, base - h),
            (x - w * 0.28 / a, base - h - 0.36 * s),
            (x + w * 0.3 / a, base - h - 0.36 * s),
            (x + w * 0.6 / a, base - h),
        ],
        roof,
    )
    c.line([(x - w * 0.6 / a, base - h), (x + w * 0.6 / a, base - h)], scale_colour(roof, 0.7), 0.02 * s)
    glow = p.dark if lit is None else lit
    pane = p.window if glow else mix(scale_colour(wall, 0.45), p.middle, 0.3)
    for k in (-0.3, 0.02):
        c.box(x + k * w / a, base - h * 0.72, 0.15 * s, 0.19 * s, scale_colour(wall, 0.6))
        c.box(x + (k + 0.018) * w / a, base - h * 0.7, 0.12 * s, 0.16 * s, pane)
        c.box(x + (k + 0.088) * w / a, base - h * 0.7, 0.012 * s, 0.16 * s, scale_colour(wall, 0.6))
    c.box(x + 0.26 * w / a, base - h * 0.64, 0.15 * s, h * 0.64, scale_colour(roof, 0.72))
    if glow:
        c.glow(x - 0.1 * w / a, base - h * 0.5, 0.5 * s, p.window, 0.34)


def pagoda(c: Canvas, x: float, base: float, s: float, near: float, floors: int = 4) -> None:
    p, a = c.palette, c.aspect
    wall = mix(p.land(near), (150, 92, 70), 0.35 if not p.dark else 0.14)
    roof = mix(p.land(min(1, near + 0.15)), (60, 60, 66), 0.35)
    for k in range(floors):
        w, y = 0.34 * s * (1 - 0.17 * k), base - 0.27 * s * k
        c.box(x - w / a, y - 0.22 * s, 2 * w, 0.22 * s, wall)
        for d in (-0.5, 0.0, 0.5):
            c.box(
                x + (d - 0.1) * w / a, y - 0.15 * s, 0.2 * w, 0.1 * s, p.window if p.dark else scale_colour(wall, 0.55)
            )
        e = w * 1.55
        c.poly(
            [
                (x - e / a, y - 0.2 * s),
                (x - e * 0.86 / a, y - 0.235 * s),
                (x - w * 0.62 / a, y - 0.32 * s),
                (x + w * 0.62 / a, y - 0.32 * s),
                (x + e * 0.86 / a, y - 0.235 * s),
                (x + e / a, y - 0.2 * s),
                (x, y - 0.225 * s),
            ],
            roof,
        )
    c.line([(x, base - 0.27 * s * floors), (x, base - 0.27 * s * floors - 0.22 * s)], roof, 0.025 * s)
    if p.dark:
        c.glow(x, base - 0.4 * s, 0.7 * s, p.window, 0.25)


def tree(
    c: Canvas, x: float, base: float, s: float, near: float, kind: str = "round", colour: Colour | None = None
) -> None:
    p, a = c.palette, c.aspect
    trunk = mix(p.land(near), (70, 48, 40), 0.4)
    leaf = colour or mix(p.land(near), (72, 118, 74), 0.42 if not p.dark else 0.08)
    rng = c.rng
    if kind == "pine":
        c.line([(x, base), (x, base - s)], trunk, 0.035 * s)
        for k in range(6):
            y, w = base - s * (0.16 + 0.14 * k), 0.3 * s * (1 - k * 0.145)
            sway = 0.01 * (rng.random() - 0.5) * s / a
            c.poly(
                [(x - w / a, y + 0.05 * s), (x + sway, y - 0.24 * s), (x + w / a, y + 0.05 * s), (x, y + 0.0 * s)],
                mix(leaf, p.horizon, 0.02 * k),
            )
        return
    c.poly(
        [
            (x - 0.045 * s / a, base),
            (x - 0.02 * s / a, base - 0.55 * s),
            (x + 0.02 * s / a, base - 0.55 * s),
            (x + 0.055 * s / a, base),
        ],
        trunk,
    )
    if kind == "bare":
        _branch(c, x, base - 0.4 * s, -90, 0.32 * s, trunk, 0.022 * s, 5)
        return
    for k in (-1, 1):
        c.line([(x, base - 0.38 * s), (x + k * 0.16 * s / a, base - 0.6 * s)], trunk, 0.02 * s)
    for ring, (count, spread, shade) in enumerate(((14, 0.31, 0.8), (13, 0.27, 1.0), (9, 0.2, 1.18))):
        for _ in range(count):
            ang, far = rng.random() * 6.283, math.sqrt(rng.random())
            r = (0.09 + 0.06 * rng.random()) * s
            c.oval(
                x + (math.cos(ang) * spread * far * s - 0.02 * ring * s) / a,
                base - 0.72 * s - 0.03 * ring * s + math.sin(ang) * spread * 0.75 * far * s,
                r,
                r * 0.85,
                scale_colour(leaf, shade),
            )


def _branch(
    c: Canvas, x: float, y: float, angle: float, length: float, colour: Colour, width: float, depth: int
) -> None:
    if depth == 0:
        return
    x2 = x + math.cos(math.radians(angle)) * length / c.aspect
    y2 = y + math.sin(math.radians(angle)) * length
    c.line([(x, y), (x2, y2)], colour, width)
    for turn in (-28, 24):
        _branch(c, x2, y2, angle + turn + 12 * (c.rng.random() - 0.5), length * 0.72, colour, width * 0.66, depth - 1)


def bridge(c: Canvas, y: float, near: float, left: float = 0.22, right: float = 0.8) -> None:
    """A stone bridge of three arches across the water."""
    p = c.palette
    stone = mix(p.land(near), (168, 158, 148), 0.38 if not p.dark else 0.14)
    middle, rise = (left + right) / 2, 0.13
    deck = [(left + (right - left) * k / 24, y - rise * math.sin(math.pi * k / 24)) for k in range(25)]
    c.poly([*deck, (right, y + 0.08), (left, y + 0.08)], stone)
    for k, w, h in ((0, 0.075, 0.15), (-1, 0.055, 0.095), (1, 0.055, 0.095)):
        cx = middle + k * (right - left) * 0.29
        top = y - rise * math.sin(math.pi * (cx - left) / (right - left)) + 0.035
        arch = [
            (cx + w * math.cos(math.pi * t / 16), y + 0.08 - (y + 0.08 - top) * math.sin(math.pi * t / 16))
            for t in range(17)
        ]
        c.poly(arch, mix(p.water(0.5), p.near, 0.35 + 0.0 * h))
    c.line(deck, mix(stone, p.light, 0.3), 0.014)
    rail = [(x, yy - 0.03) for x, yy in deck]
    c.line(rail, scale_colour(stone, 0.85), 0.008)
    for x, yy in deck[::2]:
        c.line([(x, yy), (x, yy - 0.035)], scale_colour(stone, 0.85), 0.009)


def lamp_post(c: Canvas, x: float, base: float, s: float, near: float) -> None:
    p, a = c.palette, c.aspect
    iron = mix(p.land(near), (24, 24, 30), 0.5)
    c.line([(x, base), (x, base - s)], iron, 0.03 * s)
    c.box(x - 0.055 * s / a, base - 1.12 * s, 0.11 * s, 0.13 * s, p.window if p.dark else mix(p.horizon, p.light, 0.5))
    c.poly([(x - 0.08 * s / a, base - 1.12 * s), (x, base - 1.2 * s), (x + 0.08 * s / a, base - 1.12 * s)], iron)
    if p.dark:
        c.glow(x, base - 1.06 * s, 0.62 * s, p.window, 0.75)


def lantern(c: Canvas, x: float, y: float, s: float) -> None:
    """A red paper lantern on its cord."""
    p, a = c.palette, c.aspect
    red = mix((196, 50, 40), p.near, 0.12)
    c.line([(x, y - 0.8 * s), (x, y)], scale_colour(p.near, 0.8), 0.03 * s)
    if p.dark:
        c.glow(x, y + 0.35 * s, 1.9 * s, (255, 130, 70), 0.7)
    c.oval(x, y + 0.38 * s, 0.36 * s, 0.4 * s, mix(red, (255, 190, 100), 0.35 if p.dark else 0.0))
    for k in (-0.2, 0.0, 0.2):
        c.line([(x + k * s / a, y + 0.02 * s), (x + k * s / a, y + 0.74 * s)], scale_colour(red, 0.8), 0.03 * s)
    c.box(x - 0.16 * s / a, y - 0.04 * s, 0.32 * s, 0.08 * s, (90, 60, 30))
    c.box(x - 0.16 * s / a, y + 0.74 * s, 0.32 * s, 0.08 * s, (90, 60, 30))
    c.line([(x, y + 0.8 * s), (x, y + 1.15 * s)], (200, 150, 60), 0.05 * s)


def train(c: Canvas, y: float, s: float, near: float) -> None:
    p, a = c.palette, c.aspect
    body = mix(p.land(near), (110, 44, 44), 0.34)
    for k in range(5):
        x = 0.12 + k * 0.86 * s / a
        c.box(x, y - 0.34 * s, 0.8 * s, 0.3 * s, body, round_=0.03 * s)
        for w in range(4):
            c.box(
                x + (0.08 + 0.18 * w) * s / a,
                y - 0.28 * s,
                0.11 * s,
                0.1 * s,
                p.window if p.dark else mix(p.middle, p.light, 0.4),
            )
        for w in (0.14, 0.66):
            c.oval(x + w * s / a, y - 0.02 * s, 0.045 * s, 0.045 * s, scale_colour(p.near, 0.6))


def birds(c: Canvas, x: float, y: float, count: int, s: float = 0.028) -> None:
    ink = mix(c.palette.near, c.palette.middle, 0.15)
    for _ in range(count):
        bx, by, z = (
            x + (c.rng.random() - 0.5) * 0.34,
            y + (c.rng.random() - 0.5) * 0.17,
            s * (0.6 + 0.7 * c.rng.random()),
        )
        lift = 0.35 + 0.3 * c.rng.random()
        c.line(
            [
                (bx - z / c.aspect, by - z * lift),
                (bx - 0.4 * z / c.aspect, by - z * lift * 1.15),
                (bx, by),
                (bx + 0.4 * z / c.aspect, by - z * lift * 1.15),
                (bx + z / c.aspect, by - z * lift),
            ],
            ink,
            0.13 * z,
        )


def grass(c: Canvas, colour: Colour, count: int = 240, height: float = 0.11, base: float = 1.01) -> None:
    """Blades along the lower edge."""
    for _ in range(count):
        x, tall = c.rng.random(), height * (0.4 + 0.8 * c.rng.random())
        lean = (c.rng.random() - 0.42) * tall * 0.8 / c.aspect
        tone = scale_colour(colour, 0.82 + 0.4 * c.rng.random())
        c.poly([(x - 0.004, base), (x + lean, base - tall), (x + 0.004, base)], tone)


def flowers(c: Canvas, count: int, top: float, colours: tuple[Colour, ...]) -> None:
    for _ in range(count):
        x, y = c.rng.random(), top + (1 - top) * c.rng.random() ** 0.8
        r = 0.004 + 0.012 * (y - top) / max(0.05, 1 - top)
        colour = mix(colours[c.rng.randrange(len(colours))], c.palette.near, 0.5 if c.palette.dark else 0.05)
        c.line([(x, y), (x, y + 3.2 * r)], c.palette.land(0.8), 0.35 * r)
        for k in range(5):
            c.oval(
                x + 0.9 * r * math.cos(k * 1.257) / c.aspect,
                y + 0.9 * r * math.sin(k * 1.257),
                0.6 * r,
                0.6 * r,
                colour,
            )
        c.oval(x, y, 0.45 * r, 0.45 * r, mix((250, 220, 120), c.palette.near, 0.4 if c.palette.dark else 0))
