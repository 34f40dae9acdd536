"""Furnishes rooms of many people: a church, a museum, a shop, a works, a carriage, a stage (B6)."""

import math

from patra.studio.paint.canvas import Canvas
from patra.studio.paint.palette import Colour, mix, scale_colour
from patra.studio.paint.scenery.light import WOOD, light_colour


def church(c: Canvas) -> None:
    a, stone = c.aspect, light_colour(c, (196, 186, 170))
    for x in (0.16, 0.38, 0.6, 0.82):
        w, top = 0.16, 0.14
        glass = mix((90, 130, 190), c.palette.light, 0.35 if not c.palette.dark else 0.05)
        c.oval(x + w / 2 / a, top + w / 2, w / 2 + 0.015, w / 2 + 0.03, scale_colour(stone, 0.74))
        c.box(x - 0.015 / a, top + w / 2, w + 0.03, 0.34, scale_colour(stone, 0.74))
        c.oval(x + w / 2 / a, top + w / 2, w / 2, w / 2, glass)
        c.box(x, top + w / 2, w, 0.33, glass)
        for row in range(6):
            for k in range(3):
                tone = ((196, 80, 70), (230, 190, 90), (80, 140, 110), (120, 100, 170))[(row * 2 + k) % 4]
                c.box(
                    x + (0.014 + 0.046 * k) / a,
                    top + w / 2 + 0.01 + 0.053 * row,
                    0.04,
                    0.046,
                    mix(glass, tone, 0.55 if not c.palette.dark else 0.25),
                )
        c.glow(x + w / 2 / a, 0.36, 0.3, c.palette.light, 0.22)
    c.box(0.5 - 0.02 / a, 0.44, 0.04, 0.26, light_colour(c, WOOD))
    c.box(0.5 - 0.08 / a, 0.5, 0.16, 0.035, light_colour(c, WOOD))
    for row in range(3):
        y, tone = 0.76 + 0.08 * row, scale_colour(light_colour(c, WOOD), 0.9 - 0.12 * row)
        for x, w in ((0.02 - 0.02 * row, 0.4), (0.6 - 0.01 * row, 0.44)):
            c.box(x, y, w * a, 0.026, tone, round_=0.008)
            c.box(x, y + 0.026, w * a, 0.05, scale_colour(tone, 0.8))


def gallery(c: Canvas) -> None:
    a = c.aspect
    tones: tuple[Colour, ...] = ((112, 150, 168), (206, 146, 88), (120, 152, 104), (172, 96, 90))
    for k, (x, y, w, h) in enumerate(((0.1, 0.18, 0.3, 0.36), (0.36, 0.22, 0.24, 0.28), (0.56, 0.16, 0.42, 0.34))):
        gold = light_colour(c, (196, 156, 84))
        c.box(x + 0.006, y + 0.012, w, h, (20, 14, 12), 60)
        c.box(x, y, w, h, gold, round_=0.006)
        inner = light_colour(c, tones[k])
        c.box(x + 0.022 / a, y + 0.022, w - 0.044, h - 0.044, inner)
        c.poly(
            [
                (x + 0.022 / a, y + h - 0.022),
                (x + w * 0.35 / a, y + h * 0.45),
                (x + w * 0.6 / a, y + h * 0.62),
                (x + w * 0.75 / a, y + h * 0.5),
                (x + (w - 0.022) / a, y + h - 0.022),
            ],
            scale_colour(inner, 0.72),
        )
        c.oval(x + w * 0.74 / a, y + h * 0.3, 0.03, 0.03, mix(inner, (255, 240, 200), 0.7))
        c.glow(x + w / 2 / a, y - 0.01, 0.22, (255, 226, 170), 0.35)
    stone = light_colour(c, (222, 214, 202))
    c.box(0.86, 0.52, 0.14, 0.28, stone)
    c.box(0.86 - 0.015 / a, 0.5, 0.17, 0.03, scale_colour(stone, 0.92))
    vase, x = light_colour(c, (70, 104, 150)), 0.86 + 0.07 / a
    c.oval(x, 0.42, 0.06, 0.07, vase)
    c.box(x - 0.022 / a, 0.33, 0.044, 0.06, vase)
    c.oval(x, 0.33, 0.034, 0.012, scale_colour(vase, 0.8))
    for k in range(4):
        px = 0.42 + 0.12 * k
        c.box(px, 0.72, 0.014, 0.16, light_colour(c, (190, 150, 80)))
        if k < 3:
            c.line([(px, 0.74), (px + 0.06, 0.79), (px + 0.12, 0.74)], light_colour(c, (150, 50, 50)), 0.012)


def factory(c: Canvas) -> None:
    a, steel = c.aspect, light_colour(c, (124, 134, 144))
    for k in range(7):
        x = k / 6
        c.line([(x - 0.09, 0.13), (x, 0.03), (x + 0.09, 0.13)], scale_colour(steel, 0.75), 0.01)
    c.line([(0, 0.13), (1, 0.13)], scale_colour(steel, 0.75), 0.014)
    c.line([(0, 0.03), (1, 0.03)], scale_colour(steel, 0.7), 0.01)
    for x in (0.3, 0.62, 0.92):
        c.line([(x, 0.13), (x, 0.2)], scale_colour(steel, 0.6), 0.005)
        c.oval(x, 0.21, 0.05, 0.022, light_colour(c, (240, 226, 180)))
        c.glow(x, 0.23, 0.25, (255, 226, 160), 0.4)
    c.box(0.5, 0.34, 0.36, 0.36, light_colour(c, (92, 122, 120)), round_=0.02)
    c.box(0.5 + 0.04 / a, 0.39, 0.13, 0.1, light_colour(c, (40, 50, 54)), round_=0.01)
    for k, tone in enumerate(((206, 84, 70), (230, 180, 80), (110, 170, 110))):
        c.oval(0.5 + (0.23 + 0.045 * k) / a, 0.42, 0.015, 0.015, tone)
    for x, y, r in ((0.76, 0.5, 0.12), (0.855, 0.58, 0.075)):
        for k in range(12):
            ang = k * math.pi / 6
            c.oval(x + r * math.sin(ang) / a, y - r * math.cos(ang), 0.2 * r, 0.2 * r, scale_colour(steel, 0.85))
        c.oval(x, y, r, r, scale_colour(steel, 0.85))
        c.oval(x, y, 0.55 * r, 0.55 * r, scale_colour(steel, 0.6))
        c.oval(x, y, 0.2 * r, 0.2 * r, steel)
    c.box(0.42, 0.7, 0.56 * a, 0.04, light_colour(c, (70, 72, 78)), round_=0.02)
    for k in range(9):
        c.oval(0.44 + 0.065 * k, 0.75, 0.022, 0.022, scale_colour(steel, 0.7))
    for k in range(4):
        c.box(0.5 + 0.12 * k, 0.62, 0.1, 0.08, light_colour(c, (190, 146, 96)), round_=0.006)
    c.line([(0.1, 0.28), (0.46, 0.28), (0.46, 0.5)], light_colour(c, (176, 110, 74)), 0.03)


def laboratory(c: Canvas) -> None:
    a, wood = c.aspect, light_colour(c, (176, 180, 182))
    for row in range(2):
        c.box(0.48, 0.3 + 0.17 * row, 0.46 * a, 0.016, scale_colour(wood, 0.75))
        for k in range(7):
            x, y = 0.5 + 0.062 * k, 0.3 + 0.17 * row
            tone = ((96, 160, 190), (206, 120, 100), (140, 180, 110), (214, 180, 90))[(k + row) % 4]
            if (k + row) % 2:
                c.poly(
                    [(x, y), (x + 0.07 / a, y), (x + 0.045 / a, y - 0.06), (x + 0.025 / a, y - 0.06)],
                    light_colour(c, tone),
                )
                c.box(x + 0.025 / a, y - 0.09, 0.02, 0.035, light_colour(c, (224, 234, 238)))
            else:
                c.box(x, y - 0.075, 0.045, 0.075, light_colour(c, mix(tone, (240, 240, 240), 0.3)), round_=0.01)
    c.box(0.44, 0.7, 0.54 * a, 0.035, light_colour(c, (232, 234, 234)), round_=0.006)
    c.box(0.45, 0.735, 0.52 * a, 0.17, scale_colour(wood, 0.8))
    steel, x = (66, 74, 84), 0.64
    c.box(x - 0.07 / a, 0.68, 0.15, 0.022, steel, round_=0.006)
    c.line([(x + 0.05 / a, 0.68), (x + 0.07 / a, 0.56), (x + 0.02 / a, 0.5)], steel, 0.022)
    c.line([(x + 0.04 / a, 0.47), (x - 0.03 / a, 0.63)], steel, 0.034)
    c.box(x - 0.05 / a, 0.635, 0.09, 0.012, steel)
    for k, tone in enumerate(((110, 180, 200), (220, 140, 110))):
        px = 0.78 + 0.08 * k
        c.poly(
            [(px - 0.06 / a, 0.7), (px + 0.06 / a, 0.7), (px + 0.018 / a, 0.6), (px - 0.018 / a, 0.6)],
            light_colour(c, tone),
        )
        c.box(px - 0.016 / a, 0.56, 0.032, 0.05, light_colour(c, (230, 238, 240)))


def carriage(c: Canvas) -> None:
    """Inside what drives or flies: windows in a row, seats, a rail to hold."""
    a, wall = c.aspect, light_colour(c, (206, 204, 196))
    p = c.palette
    c.box(0, 0.0, a, 0.1, scale_colour(wall, 0.8))
    for x in (0.06, 0.3, 0.54, 0.78):
        c.box(x - 0.012 / a, 0.17, 0.36, 0.34, scale_colour(wall, 0.7), round_=0.05)
        w, h = 0.336, 0.316
        c.box(x, 0.182, w, h, mix(p.middle, p.horizon, 0.4), round_=0.045)
        hills = [(x + w * k / 12 / a, 0.4 - 0.03 * math.sin(k * 0.8 + x * 9)) for k in range(13)]
        c.poly([*hills, (x + w / a, 0.485), (x, 0.485)], p.land(0.5))
        c.poly([(x, 0.45), (x + w / a, 0.44), (x + w / a, 0.49), (x, 0.49)], p.land(0.8))
        c.poly(
            [(x + 0.05 / a, 0.19), (x + 0.12 / a, 0.19), (x + 0.04 / a, 0.48), (x, 0.48), (x, 0.4)], (255, 255, 255), 26
        )
    seat = light_colour(c, (66, 96, 140))
    for k in range(4):
        x = 0.04 + 0.26 * k
        c.box(x, 0.56, 0.3, 0.24, seat, round_=0.04)
        c.box(x + 0.03 / a, 0.58, 0.24, 0.1, mix(seat, (255, 255, 255), 0.14), round_=0.03)
        c.box(x - 0.01 / a, 0.77, 0.33, 0.08, scale_colour(seat, 0.8), round_=0.03)
    c.line([(0, 0.13), (1, 0.13)], light_colour(c, (214, 190, 110)), 0.01)
    for k in range(9):
        x = 0.08 + 0.105 * k
        c.line([(x, 0.13), (x, 0.17)], light_colour(c, (120, 110, 96)), 0.006)
        c.arc(x, 0.195, 0.026, 0.026, 0, 360, light_colour(c, (120, 110, 96)), 0.008)


def pool(c: Canvas) -> None:
    a = c.aspect
    for k in range(8):
        c.box(0.02 + 0.125 * k, 0.14, 0.1 * a, 0.3, mix(c.palette.middle, c.palette.light, 0.4), round_=0.01)
    blue = light_colour(c, (74, 166, 198))
    c.poly([(0.3, 0.64), (0.98, 0.64), (1.08, 0.98), (0.12, 0.98)], blue)
    for k in range(5):
        x = 0.3 + 0.136 * (k + 0.5)
        points = [(x + (x - 0.62) * 0.42 * t / 10, 0.64 + 0.034 * t) for t in range(11)]
        for j in range(10):
            c.line(points[j : j + 2], (226, 90, 80) if j % 2 else (245, 245, 245), 0.008)
    for _ in range(40):
        x, y = 0.25 + 0.7 * c.rng.random(), 0.66 + 0.3 * c.rng.random()
        c.line([(x, y), (x + 0.03, y)], mix(blue, (255, 255, 255), 0.4), 0.004)


def stage(c: Canvas) -> None:
    a, wood = c.aspect, light_colour(c, WOOD)
    c.box(0.1, 0.1, 0.8 * a, 0.6, light_colour(c, (70, 52, 72)))
    c.poly([(0.1, 0.62), (0.9, 0.62), (0.97, 0.8), (0.03, 0.8)], mix(wood, (214, 160, 100), 0.4))
    c.box(0.03, 0.8, 0.94 * a, 0.05, scale_colour(wood, 0.7))
    red = light_colour(c, (166, 46, 48))
    for side in (0, 1):
        for k in range(5):
            x = 0.02 + 0.036 * k
            pts = [(x, 0.04), (x + 0.04, 0.04), (x + 0.034 - 0.004 * k, 0.78), (x - 0.002 * k, 0.78)]
            c.poly([(1 - px, py) if side else (px, py) for px, py in pts], scale_colour(red, 1.0 if k % 2 else 0.84))
    for k in range(10):
        c.oval(0.05 + 0.1 * k, 0.07, 0.11, 0.07, scale_colour(red, 0.94 if k % 2 else 1.05))
    for x in (0.34, 0.66):
        c.poly([(x - 0.015, 0.0), (x + 0.015, 0.0), (x + 0.13, 0.76), (x - 0.13, 0.76)], (255, 240, 200), 34)
        c.oval(x, 0.72, 0.2, 0.04, (255, 236, 190), 50)
    for k in range(9):
        c.oval(0.06 + 0.11 * k, 0.98, 0.075, 0.08, light_colour(c, (54, 40, 46)))


def store(c: Canvas) -> None:
    a, wood = c.aspect, light_colour(c, WOOD)
    goods: tuple[Colour, ...] = ((206, 96, 78), (232, 176, 82), (96, 146, 110), (92, 126, 170), (216, 200, 170))
    for row in range(3):
        y = 0.16 + 0.16 * row
        c.box(0.46, y + 0.12, 0.5 * a, 0.018, scale_colour(wood, 0.85))
        x, k = 0.47, 0
        while x < 0.93:
            w, tall = 0.045 + 0.03 * c.rng.random(), 0.05 + 0.06 * c.rng.random()
            tone = light_colour(c, goods[(k * 2 + row) % 5])
            c.box(x, y + 0.12 - tall, w, tall, tone, round_=0.014 if k % 3 else 0.004)
            c.box(x + 0.006 / a, y + 0.12 - tall * 0.6, w - 0.012, 0.014, mix(tone, (255, 255, 255), 0.5))
            x += (w + 0.012) / a
            k += 1
    top = mix(wood, (206, 164, 118), 0.5)
    c.box(0.5, 0.66, 0.48 * a, 0.035, top, round_=0.008)
    c.box(0.51, 0.695, 0.46 * a, 0.2, scale_colour(top, 0.72))
    for k in range(6):
        c.box(0.53 + 0.075 * k, 0.72, 0.1, 0.15, scale_colour(top, 0.8), round_=0.01)
    for k in range(10):
        tone = light_colour(c, (196, 84, 70) if k % 2 else (244, 236, 220))
        c.poly(
            [(0.44 + 0.056 * k, 0.04), (0.496 + 0.056 * k, 0.04), (0.49 + 0.056 * k, 0.12), (0.44 + 0.056 * k, 0.12)],
            tone,
        )
        c.oval(0.466 + 0.056 * k, 0.12, 0.05, 0.022, tone)


def cafe(c: Canvas) -> None:
    a, wood = c.aspect, light_colour(c, WOOD)
    for x in (0.46, 0.68, 0.9):
        c.line([(x, 0), (x, 0.2)], scale_colour(wood, 0.6), 0.006)
        c.poly(
            [(x - 0.07 / a, 0.27), (x - 0.03 / a, 0.2), (x + 0.03 / a, 0.2), (x + 0.07 / a, 0.27)],
            light_colour(c, (176, 84, 60)),
        )
        c.glow(x, 0.3, 0.3, (255, 210, 140), 0.55)
    board = light_colour(c, (58, 58, 60))
    c.box(0.54, 0.34, 0.26, 0.22, scale_colour(wood, 0.8))
    c.box(0.54 + 0.014 / a, 0.354, 0.232, 0.192, board)
    for row in range(4):
        c.line(
            [(0.56, 0.385 + 0.04 * row), (0.6 + 0.02 * (row % 3), 0.385 + 0.04 * row)],
            mix(board, (250, 244, 230), 0.7),
            0.006,
        )
    for x, y, s in ((0.58, 0.72, 1.0), (0.84, 0.76, 1.15)):
        c.oval(x, y + 0.2 * s, 0.1 * s, 0.02 * s, scale_colour(wood, 0.6))
        c.box(x - 0.012 / a, y, 0.024, 0.2 * s, scale_colour(wood, 0.65))
        c.oval(x, y, 0.17 * s, 0.04 * s, mix(wood, (222, 186, 140), 0.5))
        for dx in (-0.07, 0.06):
            c.oval(x + dx * s / a, y - 0.005, 0.04, 0.012, light_colour(c, (240, 236, 228)))
            c.box(x + (dx - 0.02) / a, y - 0.045, 0.04, 0.038, light_colour(c, (236, 230, 220)), round_=0.008)
        for side in (-1, 1):
            c.box(x + side * 0.24 * s / a, y - 0.06, 0.016, 0.27, scale_colour(wood, 0.55))
            c.box(
                x + (side * 0.24 - (0.1 if side > 0 else 0)) * s / a, y + 0.06, 0.12 * s, 0.018, scale_colour(wood, 0.6)
            )


def waiting(c: Canvas) -> None:
    a, wood = c.aspect, light_colour(c, WOOD)
    board = (44, 48, 58)
    c.box(0.5, 0.14, 0.44 * a, 0.22, board, round_=0.012)
    for row in range(4):
        y = 0.17 + 0.045 * row
        for x, wide in ((0.52, 0.08), (0.6, 0.3), (0.84, 0.1)):
            c.box(
                x,
                y,
                wide * (0.8 + 0.2 * ((row * 3) % 2)),
                0.018,
                (240, 190, 90) if x > 0.8 else (232, 230, 220),
                round_=0.004,
            )
    c.oval(0.42, 0.22, 0.075, 0.075, scale_colour(wood, 0.6))
    c.oval(0.42, 0.22, 0.065, 0.065, light_colour(c, (244, 240, 228)))
    c.line([(0.42, 0.22), (0.42, 0.175)], (50, 44, 40), 0.008)
    c.line([(0.42, 0.22), (0.42 + 0.035 / a, 0.235)], (50, 44, 40), 0.008)
    for x, y in ((0.46, 0.62), (0.74, 0.66)):
        c.box(x, y, 0.42, 0.14, mix(wood, (190, 136, 84), 0.5), round_=0.01)
        for k in range(1, 3):
            c.box(x, y + 0.045 * k, 0.42, 0.008, scale_colour(wood, 0.7))
        c.box(x - 0.01, y + 0.14, 0.46, 0.03, mix(wood, (190, 136, 84), 0.35), round_=0.008)
        for leg in (0.02, 0.38):
            c.box(x + leg / a, y + 0.17, 0.025, 0.1, scale_colour(wood, 0.6))
