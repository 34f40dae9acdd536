"""Draws people and animals at a place of a canvas, in a size (B6).

A name gives the same coat, hair and face in every picture of the film.
"""

from patra.kernel.canonical import sha256_hex
from patra.studio.paint.canvas import Canvas
from patra.studio.paint.palette import Colour, hue_colour, mix, scale_colour
from patra.studio.script.shots import Figure

SKIN: tuple[Colour, ...] = ((238, 200, 172), (226, 182, 150), (206, 160, 126), (244, 212, 186))
HEIGHT = {"child": 0.66, "boy": 0.67, "girl": 0.65, "woman": 0.94, "man": 1.0, "old": 0.9, "granny": 0.84}
COAT_HUES = (0.6, 0.02, 0.4, 0.11, 0.82, 0.5, 0.93, 0.25)
COATS: dict[str, Colour] = {
    "red": (178, 54, 50), "yellow": (222, 180, 58), "green": (74, 128, 80), "blue": (66, 98, 158),
    "white": (226, 224, 218), "black": (44, 42, 48), "brown": (116, 82, 58), "grey": (128, 128, 132),
    "pink": (222, 150, 166), "purple": (120, 82, 142), "orange": (214, 126, 54),
}  # fmt: skip
HAIRS: dict[str, Colour] = {
    "grey": (150, 148, 146), "white": (226, 224, 220), "red": (158, 72, 36), "blond": (206, 168, 92),
    "brown": (92, 58, 38), "black": (26, 22, 26),
}  # fmt: skip
YOUNG = frozenset({"child", "boy", "girl"})


class Look:
    """The colours of a person, from the name alone."""

    def __init__(self, figure: Figure) -> None:
        digest = sha256_hex(f"{figure.name}|{figure.kind}")
        dice = [int(digest[k : k + 2], 16) / 255 for k in range(0, 24, 2)]
        place = figure.number % len(COAT_HUES) if figure.number >= 0 else int(dice[0] * (len(COAT_HUES) - 0.01))
        self.coat = hue_colour(COAT_HUES[place] + 0.02 * dice[1], 0.42, 0.36 + 0.12 * dice[2])
        self.coat = COATS.get(figure.coat, self.coat)
        self.trousers = hue_colour(0.6 + 0.1 * dice[3], 0.16, 0.22 + 0.1 * dice[4])
        self.skin = SKIN[int(dice[5] * 3.99)]
        old = figure.kind in {"old", "granny"}
        self.hair: Colour = (
            (212, 210, 208) if old else ((40, 30, 30), (72, 46, 34), (28, 24, 28), (104, 68, 44))[int(dice[6] * 3.99)]
        )
        self.hair = HAIRS.get(figure.hair, self.hair)
        self.scarf = hue_colour(dice[7], 0.55, 0.5) if dice[8] > 0.35 else None
        self.long_hair = figure.kind in {"woman", "girl"} or (figure.kind == "child" and dice[9] > 0.5)
        self.bun = figure.kind == "granny"
        self.bald = figure.kind == "old" and dice[10] > 0.55 and not figure.hair
        capped = figure.kind == "man" and dice[11] > 0.5 and not figure.hair
        self.cap = COATS.get(figure.hat) or ((46, 52, 70) if capped else None)


def person(
    c: Canvas, figure: Figure, x: float, base: float, s: float, near: float, *, pose: str = "stand", facing: int = 1
) -> None:
    """A person of size `s` (a grown man's height, in heights of the canvas), standing on `base`."""
    p, a = c.palette, c.aspect
    look = Look(figure)
    dim = (0.5 if p.dark else 0.14) + 0.3 * (1 - near)

    def daylight_colour(colour: Colour) -> Colour:
        return mix(colour, mix(p.near, p.horizon, 0.25 * (1 - near) + 0.08), dim)

    h = s * HEIGHT.get(figure.kind, 1.0)
    big = 1.3 if figure.kind in YOUNG else 1.08
    coat, skin, hair = daylight_colour(look.coat), daylight_colour(look.skin), daylight_colour(look.hair)
    lit = mix(coat, p.light, 0.22)
    skirt = figure.kind in {"woman", "girl", "granny"}
    sit = pose == "sit"
    hip = base - (0.3 if sit else 0.46) * h

    def q(dx: float, y: float) -> tuple[float, float]:
        return x + facing * dx * h / a, y

    c.oval(x, base, 0.17 * h, 0.02 * h, scale_colour(p.near, 0.7), 90)
    if sit:
        c.poly(
            [
                q(-0.1, hip),
                q(0.24, hip - 0.02 * h),
                q(0.26, base),
                q(0.17, base),
                q(0.15, hip + 0.1 * h),
                q(-0.1, hip + 0.1 * h),
            ],
            daylight_colour(look.trousers),
        )
    elif skirt:
        c.line([q(-0.04, hip), q(-0.04, base)], daylight_colour(scale_colour(look.skin, 0.85)), 0.045 * h)
        c.line([q(0.05, hip), q(0.05, base)], daylight_colour(scale_colour(look.skin, 0.85)), 0.045 * h)
        c.poly(
            [q(-0.09, hip - 0.12 * h), q(0.09, hip - 0.12 * h), q(0.17, base - 0.16 * h), q(-0.16, base - 0.16 * h)],
            coat,
        )
        c.box(x - 0.08 * h / a, base - 0.03 * h, 0.07 * h, 0.03 * h, daylight_colour((40, 30, 30)))
        c.box(x + 0.02 * h / a, base - 0.03 * h, 0.07 * h, 0.03 * h, daylight_colour((40, 30, 30)))
    else:
        stride = 0.09 if pose == "walk" else 0.045
        c.line([q(-0.035, hip), q(-stride, base - 0.01 * h)], daylight_colour(look.trousers), 0.085 * h)
        c.line(
            [q(0.035, hip), q(stride, base - 0.01 * h)], scale_colour(daylight_colour(look.trousers), 0.86), 0.085 * h
        )
        for foot in (-stride, stride):
            c.poly(
                [
                    q(foot - 0.035, base),
                    q(foot + 0.085, base),
                    q(foot + 0.05, base - 0.04 * h),
                    q(foot - 0.035, base - 0.045 * h),
                ],
                daylight_colour((38, 30, 32)),
            )
    neck = hip - 0.36 * h
    r = 0.085 * h * big
    head = neck - 0.78 * r
    if look.long_hair:  # behind the shoulders
        c.poly(
            [
                (x + facing * dx * r / a, head + dy * r)
                for dx, dy in (
                    (-0.9, -0.6),
                    (0.2, -0.9),
                    (0.75, 0.3),
                    (0.55, 1.5),
                    (-0.4, 2.3),
                    (-1.25, 2.1),
                    (-1.3, 0.8),
                )
            ],
            scale_colour(hair, 0.85),
        )
    if look.bun:
        c.oval(x - facing * 0.85 * r / a, head - 0.75 * r, 0.45 * r, 0.42 * r, scale_colour(hair, 0.9))
    c.poly(
        [
            q(-0.13, neck + 0.045 * h),
            q(-0.05, neck),
            q(0.05, neck),
            q(0.13, neck + 0.045 * h),
            q(0.135, hip + 0.07 * h),
            q(-0.135, hip + 0.07 * h),
        ],
        coat,
    )
    c.poly(
        [q(0.02, neck + 0.01 * h), q(0.13, neck + 0.045 * h), q(0.135, hip + 0.07 * h), q(0.05, hip + 0.07 * h)], lit
    )
    swing = 0.07 if pose == "walk" else 0.02
    hand = (0.2, neck + 0.2 * h) if pose == "hold" else (0.14 + swing, hip - 0.01 * h)
    c.line([q(-0.12, neck + 0.07 * h), q(-0.145 - swing, hip - 0.01 * h)], scale_colour(coat, 0.8), 0.065 * h)
    c.line([q(0.115, neck + 0.07 * h), q(0.15, neck + 0.2 * h), q(*hand)], scale_colour(lit, 0.92), 0.062 * h)
    c.oval(*q(*hand), 0.032 * h, 0.032 * h, skin)
    c.box(x - 0.028 * h / a, neck - 0.03 * h, 0.056 * h, 0.06 * h, scale_colour(skin, 0.88))
    c.oval(x, head, r, 1.08 * r, skin)
    _face(c, x, head, r, facing, skin, daylight_colour, old=figure.kind == "old")
    if figure.name:
        c.mouths[figure.name] = (x + facing * 0.36 * r / a, head + 0.46 * r, r, skin)
    if not look.bald:
        c.poly(
            [
                (x + facing * dx * r / a, head + dy * r)
                for dx, dy in (
                    (0.92, -0.25),
                    (0.62, -0.62),
                    (0.1, -0.5),
                    (-0.5, -0.35),
                    (-0.72, 0.35),
                    (-1.08, 0.3),
                    (-1.1, -0.5),
                    (-0.6, -1.18),
                    (0.2, -1.26),
                    (0.82, -0.9),
                )
            ],
            hair,
        )
    if look.cap:
        cap = daylight_colour(look.cap)
        c.poly(
            [
                (x + facing * dx * r / a, head + dy * r)
                for dx, dy in ((-1.05, -0.42), (1.0, -0.5), (0.86, -1.15), (-0.2, -1.42), (-0.98, -1.05))
            ],
            cap,
        )
        c.line(
            [(x + facing * 0.3 * r / a, head - 0.5 * r), (x + facing * 1.42 * r / a, head - 0.42 * r)],
            scale_colour(cap, 0.7),
            0.2 * r,
        )
    if look.scarf:
        scarf = daylight_colour(look.scarf)
        c.box(x - 0.085 * h / a, neck - 0.012 * h, 0.17 * h, 0.055 * h, scarf, round_=0.02 * h)
        c.poly(
            [q(-0.05, neck + 0.03 * h), q(0.0, neck + 0.03 * h), q(-0.03, neck + 0.2 * h), q(-0.09, neck + 0.19 * h)],
            scale_colour(scarf, 0.86),
        )
    if figure.kind in {"old", "granny"} and not sit and pose != "hold":
        c.line([q(*hand), q(hand[0] + 0.03, base)], daylight_colour((84, 60, 40)), 0.025 * h)


def _face(c: Canvas, x: float, y: float, r: float, facing: int, skin: Colour, seen: object, *, old: bool) -> None:
    if r * c.h < 7:  # too small to have one
        return
    a, ink = c.aspect, mix((44, 34, 36), skin, 0.1)
    for dx in (0.12, 0.62):
        c.oval(x + facing * dx * r / a, y - 0.02 * r, 0.075 * r, 0.11 * r, ink)
        c.line(
            [(x + facing * (dx - 0.14) * r / a, y - 0.27 * r), (x + facing * (dx + 0.14) * r / a, y - 0.3 * r)],
            ink,
            0.06 * r,
        )
    c.line(
        [
            (x + facing * 0.42 * r / a, y + 0.08 * r),
            (x + facing * 0.52 * r / a, y + 0.25 * r),
            (x + facing * 0.4 * r / a, y + 0.28 * r),
        ],
        scale_colour(skin, 0.8),
        0.05 * r,
    )
    c.arc(x + facing * 0.36 * r / a, y + 0.42 * r, 0.24 * r, 0.16 * r, 25, 155, scale_colour(skin, 0.55), 0.06 * r)
    for dx in (-0.12, 0.72):
        c.oval(x + facing * dx * r / a, y + 0.3 * r, 0.16 * r, 0.11 * r, mix(skin, (226, 120, 104), 0.3))
    if old:
        c.poly(
            [
                (x + facing * dx * r / a, y + dy * r)
                for dx, dy in ((-0.5, 0.5), (0.36, 0.62), (0.86, 0.42), (0.6, 1.12), (0.1, 1.24), (-0.3, 1.02))
            ],
            mix((228, 226, 222), c.palette.near, 0.3 if c.palette.dark else 0.06),
        )
    del seen


def umbrella(c: Canvas, x: float, y: float, s: float, colour: Colour) -> None:
    a = c.aspect
    tone = mix(colour, c.palette.near, 0.3 if c.palette.dark else 0.05)
    c.line([(x, y - 0.1 * s), (x, y + 0.72 * s)], scale_colour(tone, 0.5), 0.025 * s)
    c.poly(
        [
            (x - 0.62 * s / a, y + 0.1 * s),
            (x - 0.42 * s / a, y - 0.16 * s),
            (x, y - 0.3 * s),
            (x + 0.42 * s / a, y - 0.16 * s),
            (x + 0.62 * s / a, y + 0.1 * s),
        ],
        tone,
    )
    for k in (-0.38, -0.12, 0.14, 0.4):
        c.line([(x, y - 0.3 * s), (x + k * s / a, y + 0.1 * s)], scale_colour(tone, 0.78), 0.012 * s)


def animal(c: Canvas, kind: str, x: float, base: float, s: float, near: float, facing: int = 1) -> None:
    p, a = c.palette, c.aspect
    coat = mix(
        {"cat": (222, 142, 70), "dog": (136, 92, 58), "horse": (112, 74, 54)}[kind], p.near, 0.45 if p.dark else 0.12
    )
    coat = mix(coat, p.horizon, 0.25 * (1 - near))

    def q(dx: float, dy: float) -> tuple[float, float]:
        return x + facing * dx * s / a, base + dy * s

    if kind == "cat":
        c.poly([q(-0.2, 0), q(-0.26, -0.28), q(-0.08, -0.55), q(0.12, -0.52), q(0.2, 0)], coat)
        c.oval(*q(0.1, -0.66), 0.19 * s, 0.16 * s, coat)
        c.poly([q(-0.06, -0.72), q(-0.04, -0.94), q(0.08, -0.8)], coat)
        c.poly([q(0.14, -0.8), q(0.26, -0.94), q(0.27, -0.7)], coat)
        c.line([q(-0.2, -0.05), q(-0.4, -0.06), q(-0.46, -0.24)], coat, 0.07 * s)
        for dx in (0.06, 0.18):
            c.oval(*q(dx, -0.67), 0.022 * s, 0.032 * s, (40, 36, 30))
        return
    leg, body = (0.42, 0.34) if kind == "dog" else (0.62, 0.4)
    for dx in (-0.36, -0.24, 0.24, 0.36):
        c.line([q(dx, -leg), q(dx, 0)], scale_colour(coat, 0.85), 0.085 * s)
    c.oval(*q(0, -leg - 0.06), 0.46 * s, 0.19 * s * body / 0.34, coat)
    c.line([q(0.32, -leg - 0.12), q(0.52, -leg - body)], coat, 0.2 * s)
    c.oval(*q(0.6, -leg - body - 0.02), 0.17 * s, 0.11 * s, coat)
    c.poly(
        [q(0.48, -leg - body - 0.06), q(0.46, -leg - body - 0.24), q(0.58, -leg - body - 0.1)], scale_colour(coat, 0.8)
    )
    c.line(
        [q(-0.42, -leg - 0.1), q(-0.62, -leg - (0.3 if kind == "dog" else -0.1))], scale_colour(coat, 0.75), 0.06 * s
    )
    if kind == "horse":
        c.line([q(0.3, -leg - 0.24), q(0.46, -leg - body - 0.12)], scale_colour(coat, 0.6), 0.08 * s)
