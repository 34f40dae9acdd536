"""Draws the head and shoulders of someone in a round frame; a silhouette where nobody says how they look (B6)."""

from PIL import Image, ImageDraw

from patra.studio.paint.canvas import Canvas
from patra.studio.paint.figures import HEIGHT, YOUNG, person
from patra.studio.paint.palette import Colour, mix, palette_for, scale_colour
from patra.studio.paint.pictogram import PAPER
from patra.studio.script.shots import Figure

HEAD = 0.19  # radius of a head, in parts of the frame
HEAD_Y = 0.42
SOMEONE = "someone"


def paint_portrait(c: Canvas, figure: Figure, x: float, y: float, radius: float, accent: Colour) -> None:
    """A portrait around a place; `radius` in parts of the height."""
    size = max(16, round(2 * radius * c.h))
    frame = Canvas(size, size, palette_for("day", "clear", "calm"), c.seed)
    ground = mix(PAPER, accent, 0.3)
    frame.gradient([(0, mix(ground, PAPER, 0.35)), (1, ground)])
    if figure.kind == SOMEONE:
        _silhouette(frame, mix(scale_colour(accent, 0.62), PAPER, 0.12))
    else:
        tall = HEAD / (0.085 * (1.3 if figure.kind in YOUNG else 1.08))
        base = HEAD_Y + 0.82 * tall + 0.78 * HEAD
        person(frame, figure, 0.5, base, tall / HEIGHT.get(figure.kind, 1.0), 1.0)
    mask = Image.new("L", (size * 2, size * 2), 0)
    ImageDraw.Draw(mask).ellipse((0, 0, 2 * size - 1, 2 * size - 1), fill=255)
    image = frame.image.convert("RGBA")
    image.putalpha(mask.resize((size, size), Image.Resampling.LANCZOS))
    rim = radius + 0.009
    c.oval(x, y + 0.006, rim, rim, (16, 12, 18), 60)
    c.oval(x, y, rim, rim, scale_colour(accent, 0.85))
    cx, cy = c.at(x, y)
    c.image.alpha_composite(image, (max(0, round(cx - size / 2)), max(0, round(cy - size / 2))))
    c.pen = ImageDraw.Draw(c.image)


def _silhouette(c: Canvas, tone: Colour) -> None:
    c.oval(0.5, HEAD_Y, HEAD, HEAD * 1.08, tone)
    c.box(0.43, HEAD_Y, 0.14, 0.3, tone)
    c.oval(0.5, 1.02, 0.36, 0.4, tone)
