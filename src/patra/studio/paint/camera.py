"""Decides from a painting and a camera's move what the camera sees at a moment of the shot (B6).

A move that keeps its distance (a pan, a drift) scales the painting once and then only shifts it, by parts of a pixel;
a zoom has to scale it for every frame, which takes five times as long.
"""

import math

import msgspec
from PIL import Image

from patra.studio.paint.scene import ROOM, Layers

NEARER = 0.95  # the front layer is seen a little larger, so that it passes faster
_Box = tuple[float, float, float, float]


class View(msgspec.Struct, frozen=True):
    """Where the camera looks: how many frames' sizes it takes in (1 to ROOM), and where between the edges (-1 to 1)."""

    size: float
    x: float
    y: float


def view_at(move: str, t: float) -> View:
    """The camera at a moment of the shot, `t` from 0 to 1."""
    s = t * t * (3 - 2 * t) * 0.5 + t * 0.5  # set off and arrive gently
    match move:
        case "push_in":
            return View(1.17 - 0.14 * s, 0.15 * (1 - s), 0.1)
        case "pull_out":
            return View(1.03 + 0.14 * s, -0.2 * (1 - s), 0.0)
        case "pan_right":
            return View(1.07, -0.85 + 1.7 * s, 0.1)
        case "pan_left":
            return View(1.07, 0.85 - 1.7 * s, 0.1)
        case "drift_up":
            return View(1.08, 0.1, 0.8 - 1.5 * s)
        case "drift_down":
            return View(1.08, -0.1, -0.7 + 1.5 * s)
        case _:
            return View(1.1, 0.0, 0.0)


class Camera:
    """One move over one painting."""

    def __init__(self, layers: Layers, move: str, width: int, height: int) -> None:
        self._layers = layers
        self._move = move
        self._w, self._h = width, height
        first, last = view_at(move, 0.0), view_at(move, 1.0)
        self._steady = first.size == last.size
        if self._steady:
            self._still = (first.x == last.x, first.y == last.y)
            self._back = _scale_image(layers.back, first.size, Image.Resampling.LANCZOS)
            if layers.front is not None and layers.mask is not None:
                near = first.size * NEARER
                self._front = _scale_image(layers.front, near), _scale_image(layers.mask, near)

    def at(self, t: float) -> Image.Image:
        """The picture at a moment, `t` from 0 to 1."""
        view = view_at(self._move, t)
        return self._shift_view(view) if self._steady else self._zoom_view(view)

    def in_front(self, t: float, x: float, y: float) -> tuple[float, float, float]:
        """Where a place of the front layer is seen at a moment, and how much larger than it was painted."""
        left, top, right, bottom = _box(view_at(self._move, t), self._w, self._h, NEARER)
        scale = self._w / (right - left)
        return (x - left) * scale, (y - top) * self._h / (bottom - top), scale

    def _zoom_view(self, view: View) -> Image.Image:
        layers, size = self._layers, (self._w, self._h)
        frame = layers.back.resize(size, Image.Resampling.BILINEAR, box=_box(view, *size, 1.0))
        if layers.front is None or layers.mask is None:
            return frame
        left, top, right, _ = _box(view, *size, NEARER)
        scale = (right - left) / self._w
        x, y = (left - layers.front_left) / scale, (top - layers.front_top) / scale
        wide, high = layers.front.size
        if (seen := self._part(x, y, wide / scale, high / scale)) is not None:
            x0, y0, x1, y1 = seen
            box = tuple(
                min(max(0.0, v * scale), most)
                for v, most in zip((x + x0, y + y0, x + x1, y + y1), (wide, high, wide, high), strict=True)
            )
            size = (x1 - x0, y1 - y0)
            front = layers.front.resize(size, Image.Resampling.BILINEAR, box=box)  # pyright: ignore[reportArgumentType]
            mask = layers.mask.resize(size, Image.Resampling.BILINEAR, box=box)  # pyright: ignore[reportArgumentType]
            frame.paste(front, (x0, y0), mask)
        return frame

    def _shift_view(self, view: View) -> Image.Image:
        layers = self._layers
        x, y = self._place(_box(view, self._w, self._h, 1.0), view.size, 0, 0)
        x, y = min(x, self._back.width - self._w), min(y, self._back.height - self._h)
        frame = _move_image(self._back, x, y, self._w, self._h)
        if layers.front is None:
            return frame
        front, mask = self._front
        box = _box(view, self._w, self._h, NEARER)
        x, y = self._place(box, view.size * NEARER, layers.front_left, layers.front_top)
        if (seen := self._part(x, y, front.width, front.height)) is not None:
            x0, y0, x1, y1 = seen
            shift = (x + x0, y + y0, x1 - x0, y1 - y0)
            frame.paste(_move_image(front, *shift), (x0, y0), _move_image(mask, *shift))
        return frame

    def _place(self, box: _Box, scale: float, left: int, top: int) -> tuple[float, float]:
        """Where the frame's corner lies on a scaled layer; an axis that does not move is kept on whole pixels."""
        x, y = (box[0] - left) / scale, (box[1] - top) / scale
        return (round(x) if self._still[0] else x), (round(y) if self._still[1] else y)

    def _part(self, x: float, y: float, wide: float, high: float) -> tuple[int, int, int, int] | None:
        """The part of the frame that a layer covers whose corner is so far before the frame's."""
        x0, y0 = max(0, math.ceil(-x)), max(0, math.ceil(-y))
        x1, y1 = min(self._w, math.floor(wide - x)), min(self._h, math.floor(high - y))
        return (x0, y0, x1, y1) if x1 > x0 and y1 > y0 else None


def _scale_image(
    image: Image.Image, size: float, resampling: Image.Resampling = Image.Resampling.BILINEAR
) -> Image.Image:
    return image.resize((math.ceil(image.width / size), math.ceil(image.height / size)), resampling)


def _move_image(image: Image.Image, x: float, y: float, width: int, height: int) -> Image.Image:
    """A part of an image from a place between its pixels."""
    left, top = math.floor(x), math.floor(y)
    dx, dy = x - left, y - top
    if dx:
        whole = (left, top, left + width + 1, top + height + (1 if dy else 0))
        wider = image.crop(whole)
        one, next_ = (wider.crop((k, 0, k + width, wider.height)) for k in (0, 1))
        image, left, top = Image.blend(one, next_, dx), 0, 0
    if dy:
        one, next_ = (image.crop((left, top + k, left + width, top + k + height)) for k in (0, 1))
        return Image.blend(one, next_, dy)
    return image if dx else image.crop((left, top, left + width, top + height))


def _box(view: View, width: int, height: int, nearer: float) -> _Box:
    size = max(1.0, view.size) * nearer
    full_w, full_h = round(width * ROOM), round(height * ROOM)
    w, h = width * size, height * size
    x = (full_w - w) / 2 * (1 + view.x)
    y = (full_h - h) / 2 * (1 + view.y)
    x, y = min(max(0.0, x), full_w - w), min(max(0.0, y), full_h - h)
    return x, y, x + w, y + h
