"""Turns colours and a seed into a surface to paint on: soft shapes, noise, gradients, glows (B6).

Places are fractions of width and height, sizes are fractions of the height, so a picture looks the same at every
quality.
Everything is painted larger than it is shown and then reduced, which smooths the edges.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from patra.studio.paint.palette import Colour, Palette, mix

Point: TypeAlias = tuple[float, float]
Floats: TypeAlias = NDArray[np.floating[Any]]


class Canvas:
    """An RGBA surface; `aspect` is its width over its height."""

    def __init__(self, width: int, height: int, palette: Palette, seed: int, *, fill: Colour | None = None) -> None:
        self.w = width
        self.h = height
        self.palette = palette
        self.seed = seed
        self.rng = random.Random(seed)
        self.image = Image.new("RGBA", (width, height), (*fill, 255) if fill else (0, 0, 0, 0))
        self.pen = ImageDraw.Draw(self.image)
        self.mouths: dict[str, tuple[float, float, float, Colour]] = {}  # by name: place, radius of the head, skin

    def show(self, image: Image.Image) -> None:
        """Go on with another image of the same size."""
        self.image = image
        self.pen = ImageDraw.Draw(image)

    @property
    def aspect(self) -> float:
        return self.w / self.h

    def at(self, x: float, y: float) -> Point:
        return x * self.w, y * self.h

    def poly(self, points: Iterable[Point], colour: Colour, alpha: int = 255) -> None:
        self._with(lambda pen: pen.polygon([self.at(*p) for p in points], fill=(*colour, alpha)), alpha)

    def oval(self, x: float, y: float, rx: float, ry: float, colour: Colour, alpha: int = 255) -> None:
        """An ellipse around a place; radii in heights."""
        cx, cy = self.at(x, y)
        box = (cx - rx * self.h, cy - ry * self.h, cx + rx * self.h, cy + ry * self.h)
        self._with(lambda pen: pen.ellipse(box, fill=(*colour, alpha)), alpha)

    def box(
        self, x: float, y: float, width: float, height: float, colour: Colour, alpha: int = 255, round_: float = 0
    ) -> None:
        """A rectangle with its top left corner at a place; width and height in heights."""
        left, top = self.at(x, y)
        shape = (left, top, left + max(1, width * self.h), top + max(1, height * self.h))
        self._with(lambda pen: pen.rounded_rectangle(shape, round_ * self.h, fill=(*colour, alpha)), alpha)

    def line(self, points: Sequence[Point], colour: Colour, width: float, alpha: int = 255) -> None:
        thick = max(1, round(width * self.h))
        self._with(
            lambda pen: pen.line([self.at(*p) for p in points], fill=(*colour, alpha), width=thick, joint="curve"),
            alpha,
        )

    def arc(
        self, x: float, y: float, rx: float, ry: float, start: float, end: float, colour: Colour, width: float
    ) -> None:
        cx, cy = self.at(x, y)
        box = (cx - rx * self.h, cy - ry * self.h, cx + rx * self.h, cy + ry * self.h)
        self.pen.arc(box, start, end, fill=(*colour, 255), width=max(1, round(width * self.h)))

    def _with(self, paint: Callable[[ImageDraw.ImageDraw], None], alpha: int) -> None:
        if alpha == 255:
            paint(self.pen)
            return
        veil = Image.new("RGBA", self.image.size, (0, 0, 0, 0))
        paint(ImageDraw.Draw(veil))
        self.image.alpha_composite(veil)

    def gradient(self, stops: Sequence[tuple[float, Colour]], top: float = 0.0, bottom: float = 1.0) -> None:
        """Fill a band with colours from top to bottom."""
        first, last = round(top * self.h), round(bottom * self.h)
        if last <= first:
            return
        rows = np.linspace(0, 1, last - first, dtype=np.float32)
        places = [place for place, _ in stops]
        channels = [np.interp(rows, places, [colour[c] for _, colour in stops]) for c in range(3)]
        strip = np.stack(channels, axis=1)[:, None, :]
        grain = np.random.default_rng(self.seed).normal(0, 0.8, (last - first, self.w, 1))
        band = np.clip(strip + grain, 0, 255).astype(np.uint8)
        self.image.paste(Image.fromarray(band, "RGB"), (0, first))
        self.pen = ImageDraw.Draw(self.image)

    def glow(
        self, x: float, y: float, radius: float, colour: Colour, strength: float = 1.0, *, flat: float = 1.0
    ) -> None:
        """Light added around a place; `flat` < 1 squeezes it upright (a gleam on water)."""
        cx, cy = self.at(x, y)
        rx, ry = radius * self.h, radius * self.h * flat
        box = (max(0, int(cx - rx)), max(0, int(cy - ry)), min(self.w, int(cx + rx) + 1), min(self.h, int(cy + ry) + 1))
        if box[2] <= box[0] or box[3] <= box[1]:
            return
        ys = (np.arange(box[1], box[3], dtype=np.float32) - cy)[:, None] / ry
        xs = (np.arange(box[0], box[2], dtype=np.float32) - cx)[None, :] / rx
        fall = np.clip(1 - np.sqrt(xs * xs + ys * ys), 0, 1) ** 2 * strength
        part = np.asarray(self.image.crop(box)).astype(np.float32)
        light = fall[:, :, None] * np.array(colour, np.float32)
        rgb = part[:, :, :3]
        part[:, :, :3] = 255 - (255 - rgb) * (255 - np.clip(light, 0, 255)) / 255
        part[:, :, 3] = np.maximum(part[:, :, 3], 255 * np.clip(fall, 0, 1) * (part[:, :, 3] > 0))
        self.image.paste(Image.fromarray(part.astype(np.uint8), "RGBA"), box[:2])
        self.pen = ImageDraw.Draw(self.image)

    def veil(self, mask: Floats, colour: Colour) -> None:
        """Colour laid over the whole canvas by a mask of 0 to 1 (any size: it is stretched)."""
        soft = Image.fromarray((np.clip(mask, 0, 1) * 255).astype(np.uint8), "L").resize(
            self.image.size, Image.Resampling.BICUBIC
        )
        cover = Image.new("RGBA", self.image.size, (*colour, 255))
        cover.putalpha(soft)
        self.image.alpha_composite(cover)

    def paste(self, other: "Canvas", alpha: float = 1.0) -> None:
        if alpha < 1:
            other.image.putalpha(other.image.getchannel("A").point([int(v * alpha) for v in range(256)]))
        self.image.alpha_composite(other.image)

    def layer(self) -> "Canvas":
        """An empty surface of the same size, palette and chance."""
        fresh = Canvas(self.w, self.h, self.palette, self.seed)
        fresh.rng = self.rng
        return fresh

    def blur(self, radius: float) -> None:
        self.image = self.image.filter(ImageFilter.GaussianBlur(radius * self.h))
        self.pen = ImageDraw.Draw(self.image)


def noise(width: int, height: int, seed: int, *, scale: float = 4.0, octaves: int = 4, stretch: float = 1.0) -> Floats:
    """Soft noise between 0 and 1; `stretch` > 1 draws it out sideways, as clouds are."""
    generator = np.random.default_rng(seed)
    total = np.zeros((height, width), np.float32)
    weight = 1.0
    for octave in range(octaves):
        cells = scale * 2**octave
        rows, columns = max(2, round(cells)), max(2, round(cells * width / height / stretch))
        grid = generator.random((rows + 1, columns + 1), dtype=np.float32)
        layer = Image.fromarray(grid, "F").resize((width, height), Image.Resampling.BICUBIC)
        total += np.asarray(layer) * weight
        weight *= 0.5
    total -= total.min()
    return total / max(float(total.max()), 1e-6)


def ridge(rng: random.Random, points: int, rough: float) -> list[float]:
    """Heights of a skyline between 0 and 1: midpoints displaced again and again."""
    line = [rng.random(), rng.random()]
    swing = 1.0
    while len(line) < points:
        finer = [line[0]]
        for left, right in pairwise(line):
            finer += [(left + right) / 2 + (rng.random() - 0.5) * swing, right]
        line = finer
        swing *= rough
    low, high = min(line), max(line)
    return [(value - low) / (high - low or 1) for value in line]


def vignette(image: Image.Image, strength: float, tint: Colour = (10, 8, 20)) -> Image.Image:
    """Darker corners, and the grain of paper."""
    width, height = image.size
    ys = np.linspace(-1, 1, height, dtype=np.float32)[:, None]
    xs = np.linspace(-1, 1, width, dtype=np.float32)[None, :]
    dark = np.clip((xs * xs * 0.8 + ys * ys * 0.9) - 0.35, 0, 1) * strength
    grain = np.random.default_rng(7).normal(0, 2.2, (height, width)).astype(np.float32)
    pixels = np.asarray(image.convert("RGB")).astype(np.float32)
    pixels = pixels * (1 - dark[:, :, None]) + np.array(tint, np.float32) * dark[:, :, None] + grain[:, :, None]
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8), "RGB")


__all__ = ["Canvas", "Floats", "Point", "mix", "noise", "ridge", "vignette"]
