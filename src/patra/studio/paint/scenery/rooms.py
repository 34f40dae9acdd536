"""Furnishes rooms by their word: a ward, a class, an office, a cell (B6). Walls, floor and light are the interior's."""

import math
from collections.abc import Callable

from patra.studio.paint.canvas import Canvas
from patra.studio.paint.palette import Colour, mix, scale_colour
from patra.studio.paint.scenery.light import FLOOR, WOOD, light_colour
from patra.studio.paint.scenery.public_rooms import (
    cafe,
    carriage,
    church,
    factory,
    gallery,
    laboratory,
    pool,
    stage,
    store,
    waiting,
)


def ward(c: Canvas) -> None:
    a = c.aspect
    frame, sheet, blanket = (
        light_colour(c, (170, 178, 184)),
        light_colour(c, (246, 246, 242)),
        light_colour(c, (122, 172, 178)),
    )
    for x in (0.46, 0.72):
        c.box(x, FLOOR - 0.2, 0.02, 0.3, frame)
        c.box(x, FLOOR - 0.06, 0.44, 0.1, sheet, round_=0.02)
        c.box(x + 0.1 / a, FLOOR - 0.065, 0.34, 0.105, blanket, round_=0.02)
        c.box(x + 0.02 / a, FLOOR - 0.1, 0.12, 0.055, scale_colour(sheet, 0.97), round_=0.02)
        c.box(x + 0.42 / a, FLOOR - 0.12, 0.02, 0.22, frame)
    c.line([(0.69, 0.3), (0.69, FLOOR + 0.08)], frame, 0.008)
    c.box(0.69 - 0.03 / a, 0.3, 0.06, 0.09, light_colour(c, (214, 234, 240)), round_=0.015)
    c.line([(0.55, 0.12), (1.0, 0.12)], frame, 0.008)
    screen = light_colour(c, (176, 208, 206))
    c.poly([(0.9, 0.12), (1.0, 0.12), (1.0, 0.66), (0.915, 0.64)], screen)
    for k in range(4):
        c.line([(0.91 + 0.025 * k, 0.13), (0.92 + 0.024 * k, 0.64)], scale_colour(screen, 0.88), 0.005)
    c.box(0.61, 0.2, 0.11, 0.11, light_colour(c, (250, 250, 248)), round_=0.02)
    red = light_colour(c, (204, 70, 62))
    c.box(0.61 + 0.042 / a, 0.22, 0.026, 0.07, red)
    c.box(0.61 + 0.02 / a, 0.242, 0.07, 0.026, red)


def school(c: Canvas) -> None:
    a, wood = c.aspect, light_colour(c, WOOD)
    c.box(0.42, 0.14, 0.48 * a, 0.36, scale_colour(wood, 0.85), round_=0.01)
    board = light_colour(c, (44, 86, 70))
    c.box(0.42 + 0.02 / a, 0.16, 0.48 * a - 0.04, 0.31, board)
    chalk = mix(board, (250, 250, 240), 0.75)
    for row, length in enumerate((0.22, 0.3, 0.16)):
        points = [(0.46 + length * k / 20, 0.23 + 0.07 * row + 0.008 * math.sin(k * 1.7 + row)) for k in range(21)]
        for start in (0, 7, 14):
            c.line(points[start : start + 6], chalk, 0.006)
    c.arc(0.82, 0.3, 0.06, 0.06, 0, 360, chalk, 0.006)
    c.line([(0.82 - 0.05 / a, 0.33), (0.82 + 0.05 / a, 0.33), (0.82, 0.25), (0.82 - 0.05 / a, 0.33)], chalk, 0.005)
    c.box(0.5, 0.475, 0.3, 0.012, mix(wood, (255, 255, 255), 0.3))
    top = mix(wood, (214, 170, 116), 0.6)
    for row, (y, wide) in enumerate(((0.7, 0.2), (0.82, 0.27))):
        for k in range(3 - row):
            x = 0.5 + 0.19 * k + 0.02 * row
            c.box(x, y, wide, 0.03, top, round_=0.006)
            for leg in (0.01, wide - 0.03):
                c.box(x + leg / a, y + 0.03, 0.018, 0.12 + 0.04 * row, scale_colour(wood, 0.7))


def office(c: Canvas) -> None:
    a, wood = c.aspect, light_colour(c, WOOD)
    shelf = light_colour(c, (150, 140, 132))
    c.box(0.7, 0.16, 0.42, 0.56, shelf)
    for row in range(4):
        c.box(0.7 + 0.01 / a, 0.175 + 0.138 * row, 0.4, 0.115, scale_colour(shelf, 0.62))
        for k in range(8):
            tone = light_colour(c, ((86, 112, 140), (170, 92, 70), (120, 140, 100), (206, 196, 176))[(k * 3 + row) % 4])
            c.box(0.7 + (0.02 + 0.047 * k) / a, 0.19 + 0.138 * row, 0.04, 0.1, tone)
    top = mix(wood, (206, 164, 118), 0.5)
    c.box(0.44, 0.7, 0.5 * a, 0.035, top, round_=0.008)
    c.box(0.45, 0.735, 0.16, 0.17, scale_colour(top, 0.75))
    c.box(0.86, 0.735, 0.14, 0.17, scale_colour(top, 0.75))
    c.box(0.62, 0.52, 0.26, 0.16, (52, 54, 62), round_=0.012)
    c.box(0.62 + 0.012 / a, 0.532, 0.236, 0.126, mix((150, 196, 214), c.palette.near, 0.2 if c.palette.dark else 0.0))
    c.box(0.62 + 0.115 / a, 0.68, 0.03, 0.025, (52, 54, 62))
    c.box(0.5, 0.675, 0.12, 0.024, light_colour(c, (246, 242, 230)))
    _plant(c, 0.93, 0.74, 0.2)


def _plant(c: Canvas, x: float, base: float, s: float) -> None:
    a = c.aspect
    for k in range(9):
        lean = (k - 4) * 0.16
        tip = (x + lean * s * 1.3 / a, base - s * (1.5 - 0.12 * abs(k - 4)))
        c.line([(x, base - 0.3 * s), tip], light_colour(c, (74, 126, 84) if k % 2 else (94, 148, 92)), 0.11 * s)
    pot = light_colour(c, (188, 104, 74))
    c.poly(
        [
            (x - 0.3 * s / a, base - 0.4 * s),
            (x + 0.3 * s / a, base - 0.4 * s),
            (x + 0.2 * s / a, base + 0.1 * s),
            (x - 0.2 * s / a, base + 0.1 * s),
        ],
        pot,
    )


def loft(c: Canvas) -> None:
    """Under the roof: an attic, a cabin, a barn."""
    a, wood = c.aspect, light_colour(c, WOOD)
    for x in (0.0, 1.0):
        inner = 0.34 if x == 0 else 0.66
        c.poly([(x, 0), (inner, 0), (x, 0.52)], scale_colour(wood, 0.62))
        c.line([(inner, 0), (x, 0.52)], scale_colour(wood, 0.45), 0.03)
    c.line([(0.0, 0.1), (1, 0.1)], scale_colour(wood, 0.5), 0.035)
    for x in (0.3, 0.72):
        c.line([(x, 0.1), (x, FLOOR)], scale_colour(wood, 0.55), 0.03)
    c.box(0.76, 0.6, 0.3, 0.17, light_colour(c, (132, 88, 56)), round_=0.02)
    c.box(0.76, 0.57, 0.3, 0.07, light_colour(c, (150, 102, 66)), round_=0.03)
    for k in (0.04, 0.24):
        c.box(0.76 + k / a, 0.57, 0.02, 0.2, light_colour(c, (190, 150, 80)))
    for k, (w, h) in enumerate(((0.15, 0.13), (0.12, 0.11))):
        c.box(0.58 + 0.03 * k, 0.66 - 0.11 * k, w, h, light_colour(c, (188, 152, 106)), round_=0.004)
        c.line(
            [(0.58 + 0.03 * k, 0.7 - 0.11 * k), (0.58 + 0.03 * k + w / a, 0.7 - 0.11 * k)],
            light_colour(c, (150, 116, 80)),
            0.006,
        )


def vault(c: Canvas) -> None:
    """Stone walls: a cell, a cellar, a crypt."""
    a, stone = c.aspect, light_colour(c, (128, 126, 124))
    for row in range(9):
        for k in range(-1, 9):
            c.box(
                0.13 * k + 0.065 * (row % 2),
                0.084 * row,
                0.13 * a - 0.012,
                0.074,
                scale_colour(stone, 0.86 + 0.05 * ((row * 3 + k * 5) % 4)),
                round_=0.014,
            )
    glow = mix((150, 176, 196), c.palette.light, 0.3)
    c.box(0.46, 0.14, 0.24, 0.2, scale_colour(stone, 0.5), round_=0.02)
    c.box(0.46 + 0.015 / a, 0.155, 0.21, 0.17, glow if not c.palette.dark else scale_colour(glow, 0.3), round_=0.01)
    for k in range(4):
        c.box(0.46 + (0.04 + 0.047 * k) / a, 0.15, 0.014, 0.18, (40, 40, 44))
    if not c.palette.dark:
        c.poly([(0.46, 0.34), (0.59, 0.34), (0.74, 0.98), (0.5, 0.98)], c.palette.light, 40)
    door = light_colour(c, (96, 66, 46))
    c.oval(0.84 + 0.1 / a, 0.36, 0.12, 0.1, scale_colour(stone, 0.55))
    c.box(0.84 - 0.02 / a, 0.36, 0.24, 0.4, scale_colour(stone, 0.55))
    c.oval(0.84 + 0.1 / a, 0.37, 0.1, 0.085, door)
    c.box(0.84, 0.37, 0.2, 0.39, door)
    for y in (0.42, 0.62):
        c.box(0.84, y, 0.2, 0.022, (52, 48, 48))


def corridor(c: Canvas) -> None:
    wall = light_colour(c, (198, 186, 166))
    c.poly([(0, 0), (0.38, 0.24), (0.38, 0.62), (0, 1)], scale_colour(wall, 0.82))
    c.poly([(1, 0), (0.62, 0.24), (0.62, 0.62), (1, 1)], scale_colour(wall, 0.76))
    c.poly([(0, 0), (1, 0), (0.62, 0.24), (0.38, 0.24)], scale_colour(wall, 0.94))
    c.poly([(0, 1), (1, 1), (0.62, 0.62), (0.38, 0.62)], light_colour(c, (146, 116, 92)))
    c.poly([(0.3, 1), (0.7, 1), (0.545, 0.62), (0.455, 0.62)], light_colour(c, (150, 62, 60)))
    c.poly([(0.38, 0.24), (0.62, 0.24), (0.62, 0.62), (0.38, 0.62)], scale_colour(wall, 0.7))
    door = light_colour(c, (120, 80, 54))
    c.box(0.47, 0.34, 0.06 * c.aspect, 0.28, door)
    for side in (0, 1):
        for t1, t2 in ((0.12, 0.36), (0.5, 0.68), (0.78, 0.9)):
            x1, x2 = (0.38 * t for t in (t1, t2))
            tops = [0.24 * t + 0.2 * (1 - t) + 0.06 for t in (t1, t2)]
            feet = [1 - 0.38 * t for t in (t1, t2)]
            pts = [(x1, tops[0]), (x2, tops[1]), (x2, feet[1]), (x1, feet[0])]
            c.poly([(1 - x, y) if side else (x, y) for x, y in pts], scale_colour(door, 0.9 if side else 1.0))
    for k in range(3):
        c.oval(0.5, 0.06 + 0.065 * k, 0.1 - 0.03 * k, 0.018 - 0.004 * k, (255, 240, 205))
        c.glow(0.5, 0.08 + 0.065 * k, 0.32 - 0.08 * k, (255, 230, 180), 0.4)


def bathroom(c: Canvas) -> None:
    a, tile = c.aspect, light_colour(c, (190, 220, 222))
    for row in range(9):
        for k in range(20):
            c.box(k / 20, 0.085 * row, a / 20 - 0.006, 0.078, scale_colour(tile, 0.95 + 0.03 * ((row + k) % 3)))
    c.box(0.56, 0.6, 0.62, 0.22, light_colour(c, (250, 250, 250)), round_=0.08)
    c.box(0.55, 0.58, 0.65, 0.04, light_colour(c, (238, 240, 240)), round_=0.02)
    c.box(0.42, 0.56, 0.16, 0.05, light_colour(c, (248, 248, 248)), round_=0.02)
    c.box(0.42 + 0.06 / a, 0.6, 0.04, 0.2, light_colour(c, (236, 238, 238)))
    c.oval(0.42 + 0.08 / a, 0.34, 0.12, 0.15, light_colour(c, (196, 160, 110)))
    c.oval(0.42 + 0.08 / a, 0.34, 0.105, 0.135, mix(light_colour(c, (220, 236, 242)), c.palette.light, 0.3))


Furnisher = Callable[[Canvas], None]
ROOMS: dict[str, tuple[Furnisher, Colour, bool]] = {
    "ward": (ward, (206, 218, 210), True),
    "school": (school, (224, 210, 176), True),
    "office": (office, (206, 204, 196), True),
    "gallery": (gallery, (214, 206, 194), False),
    "church": (church, (206, 198, 184), False),
    "store": (store, (212, 188, 150), True),
    "cafe": (cafe, (186, 150, 116), True),
    "factory": (factory, (166, 168, 166), False),
    "laboratory": (laboratory, (218, 226, 226), True),
    "loft": (loft, (168, 128, 92), False),
    "vault": (vault, (128, 126, 124), False),
    "corridor": (corridor, (198, 186, 166), False),
    "carriage": (carriage, (206, 204, 196), False),
    "waiting": (waiting, (214, 206, 190), True),
    "bathroom": (bathroom, (196, 220, 222), False),
    "pool": (pool, (214, 224, 226), False),
    "stage": (stage, (120, 90, 90), False),
}
"""What furnishes a room, the colour of its walls, and whether it has the window of a house."""
