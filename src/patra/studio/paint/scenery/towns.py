"""Paints places of a town: a market, a square, a bus stop, a car park, the yard of a school (B6)."""

from patra.studio.paint import things
from patra.studio.paint.canvas import Canvas
from patra.studio.paint.palette import Colour, mix, scale_colour
from patra.studio.paint.scenery.terrain import ground, toned_land
from patra.studio.script.shots import Picture

Light = tuple[float, float]


def market(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    """Stalls under striped cloth before a row of houses."""
    a = c.aspect
    ground(c, picture, horizon, 0.5)
    for k in range(9):
        things.house(c, 0.02 + 0.12 * k, horizon + 0.01, 0.16 + 0.05 * c.rng.random(), 0.4, tone=c.rng.random())
    stone = toned_land(c, (186, 176, 160), 0.8)
    c.gradient([(0, scale_colour(stone, 0.86)), (1, stone)], horizon + 0.02, 1)
    tones: tuple[Colour, ...] = ((204, 84, 72), (76, 132, 120), (222, 164, 70), (92, 112, 164))
    for k, (x, y, s) in enumerate(((0.04, 0.16, 0.24), (0.3, 0.13, 0.22), (0.55, 0.14, 0.23), (0.79, 0.18, 0.26))):
        base, cloth = horizon + y, toned_land(c, tones[k], 0.8, 0.72)
        for leg in (0.02, 1.36):
            c.box(x + leg * s / a, base - 0.9 * s, 0.05 * s, 0.92 * s, scale_colour(c.palette.near, 1.0))
        c.box(x, base - 0.34 * s, 1.4 * s, 0.34 * s, toned_land(c, (150, 104, 68), 0.8))
        for j in range(9):
            fruit = ((214, 92, 70), (238, 178, 70), (120, 160, 84), (170, 90, 120))[(j + k) % 4]
            c.oval(x + (0.1 + 0.15 * j) * s / a, base - 0.38 * s, 0.075 * s, 0.075 * s, toned_land(c, fruit, 0.8, 0.7))
        for j in range(7):
            tone = cloth if j % 2 else toned_land(c, (248, 240, 224), 0.8, 0.8)
            left, right = x + (0.2 * j - 0.02) * s / a, x + (0.2 * j + 0.18) * s / a
            c.poly(
                [
                    (left + 0.04 * s / a, base - 1.16 * s),
                    (right + 0.02 * s / a, base - 1.16 * s),
                    (right, base - 0.86 * s),
                    (left, base - 0.86 * s),
                ],
                tone,
            )
            c.oval((left + right) / 2, base - 0.86 * s, 0.1 * s, 0.06 * s, tone)
        if c.palette.dark:
            c.glow(x + 0.7 * s / a, base - 0.6 * s, 0.22, c.palette.window, 0.7)
    del light


def square(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    a = c.aspect
    ground(c, picture, horizon, 0.5)
    for k in range(9):
        things.house(c, 0.01 + 0.125 * k, horizon + 0.02, 0.2 + 0.07 * c.rng.random(), 0.45, tone=c.rng.random())
    stone = toned_land(c, (196, 186, 170), 0.85)
    c.gradient([(0, scale_colour(stone, 0.85)), (1, stone)], horizon + 0.03, 1)
    for k in range(9):
        t = (k / 9) ** 1.8
        c.line([(0, horizon + 0.04 + 0.42 * t), (1, horizon + 0.04 + 0.42 * t)], scale_colour(stone, 0.9), 0.003)
    for k in range(-8, 9):
        c.line([(0.5 + 0.05 * k, horizon + 0.03), (0.5 + 0.22 * k, 1)], scale_colour(stone, 0.92), 0.003)
    x, y, rim = 0.72, horizon + 0.19, toned_land(c, (160, 154, 148), 0.8)
    c.oval(x, y, 0.2, 0.05, scale_colour(rim, 0.8))
    c.oval(x, y - 0.012, 0.19, 0.043, c.palette.water(0.5))
    c.box(x - 0.02 / a, y - 0.2, 0.04, 0.19, rim)
    c.oval(x, y - 0.2, 0.09, 0.024, rim)
    for k in range(7):
        lean = (k - 3) * 0.03
        c.line(
            [(x, y - 0.24), (x + lean / a, y - 0.28 + 0.012 * abs(k - 3)), (x + 1.9 * lean / a, y - 0.16)],
            mix(c.palette.light, c.palette.middle, 0.3),
            0.006,
        )
    for px in (0.2, 0.9):
        things.lamp_post(c, px, horizon + 0.22, 0.34, 0.8)
    del light


def halt(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    """A bus stop, a car park, a petrol station: tar, a kerb, a shelter."""
    a = c.aspect
    ground(c, picture, horizon, 0.4)
    for k in range(9):
        things.house(c, 0.03 + 0.12 * k, horizon + 0.02, 0.13 + 0.05 * c.rng.random(), 0.35, tone=c.rng.random())
    tar, kerb = toned_land(c, (104, 106, 114), 0.8), toned_land(c, (196, 190, 180), 0.8)
    c.poly([(0, horizon + 0.08), (1, horizon + 0.08), (1, horizon + 0.24), (0, horizon + 0.24)], tar)
    for k in range(7):
        c.box(0.02 + 0.15 * k, horizon + 0.155, 0.12, 0.012, mix(tar, (250, 250, 236), 0.7))
    c.gradient([(0, kerb), (1, scale_colour(kerb, 0.86))], horizon + 0.24, 1)
    x, base, steel = 0.5, horizon + 0.32, toned_land(c, (86, 110, 120), 0.8)
    c.box(x, base - 0.34, 0.36 * a, 0.024, steel, round_=0.006)
    for px in (0.0, 0.34):
        c.box(x + 0.006 + px, base - 0.33, 0.016, 0.33, steel)
    c.box(x + 0.012, base - 0.31, 0.335 * a, 0.22, mix(c.palette.middle, c.palette.light, 0.4), 120)
    c.box(x + 0.03, base - 0.1, 0.26 * a, 0.022, toned_land(c, (160, 112, 74), 0.8))
    c.line([(0.44, base), (0.44, base - 0.4)], steel, 0.01)
    c.oval(0.44, base - 0.42, 0.045, 0.045, toned_land(c, (66, 110, 170), 0.8, 0.8))
    c.box(0.44 - 0.022 / a, base - 0.44, 0.044, 0.035, (248, 248, 240), round_=0.006)
    del light


def parking(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    """A car park, a filling station: tar with bays, cars in them."""
    a = c.aspect
    ground(c, picture, horizon, 0.4)
    for k in range(8):
        things.tree(c, 0.05 + 0.13 * k, horizon + 0.03, 0.16 + 0.05 * c.rng.random(), 0.4, "round")
    tar = toned_land(c, (112, 114, 122), 0.8)
    c.gradient([(0, scale_colour(tar, 0.9)), (1, tar)], horizon + 0.03, 1)
    for k in range(8):
        c.line(
            [(0.1 + 0.12 * k, horizon + 0.06), (0.02 + 0.137 * k, horizon + 0.22)],
            mix(tar, (250, 250, 240), 0.7),
            0.007,
        )
    tones: tuple[Colour, ...] = ((190, 74, 62), (70, 112, 160), (226, 222, 210), (96, 136, 104))
    for k, place in enumerate((0, 2, 3, 6)):
        x, y, body = 0.125 + 0.12 * place, horizon + 0.16, toned_land(c, tones[k], 0.9, 0.75)
        c.box(x, y - 0.06, 0.16, 0.07, body, round_=0.02)
        c.box(x + 0.03 / a, y - 0.105, 0.1, 0.06, body, round_=0.024)
        c.box(
            x + 0.042 / a, y - 0.095, 0.076, 0.035, c.palette.window if c.palette.dark else (196, 218, 226), round_=0.01
        )
        for wheel in (0.035, 0.125):
            c.oval(x + wheel / a, y + 0.012, 0.02, 0.02, (40, 40, 46))
    del light


def yard(c: Canvas, picture: Picture, horizon: float, light: Light) -> None:
    """The yard of a school: a long house, a flag, lines of games on the ground."""
    a = c.aspect
    ground(c, picture, horizon, 0.4)
    wall, roof = toned_land(c, (226, 206, 176), 0.6, 0.7), toned_land(c, (168, 86, 70), 0.6, 0.7)
    c.box(0.18, horizon - 0.22, 0.64 * a, 0.24, wall)
    c.poly([(0.16, horizon - 0.22), (0.84, horizon - 0.22), (0.81, horizon - 0.29), (0.19, horizon - 0.29)], roof)
    for row in (0.18, 0.07):
        for k in range(9):
            if k == 4 and row == 0.07:
                c.box(0.485, horizon - 0.1, 0.07, 0.12, scale_colour(roof, 0.7))
                continue
            c.box(
                0.205 + 0.068 * k,
                horizon - row,
                0.07,
                0.06,
                c.palette.window if c.palette.dark else scale_colour(wall, 0.62),
            )
    for k in range(5):
        things.tree(c, (0.04, 0.11, 0.89, 0.95, 0.99)[k], horizon + 0.04, 0.24, 0.5, "round")
    sand = toned_land(c, (206, 184, 148), 0.85)
    c.gradient([(0, scale_colour(sand, 0.88)), (1, sand)], horizon + 0.03, 1)
    white = mix(sand, (252, 250, 244), 0.75)
    for k in range(4):
        r = 0.34 + 0.07 * k
        c.arc(0.5, horizon + 0.3, r * 1.6, r * 0.5, 0, 360, white, 0.005)
    c.line([(0.87, horizon + 0.12), (0.87, 0.12)], toned_land(c, (190, 194, 200), 0.8), 0.008)
    c.poly([(0.87, 0.13), (0.945, 0.15), (0.87, 0.2)], toned_land(c, (204, 70, 60), 0.9, 0.8))
    del light
