"""A portrait is round and has the looks of its figure; someone without looks is a silhouette."""

import pytest

from patra.studio.paint.canvas import Canvas
from patra.studio.paint.palette import palette_for
from patra.studio.paint.portraits import paint_portrait
from patra.studio.script.shots import Figure


def portrait(kind: str, name: str = "Ines") -> bytes:
    canvas = Canvas(160, 90, palette_for("day", "clear", "calm"), 1, fill=(250, 246, 235))
    paint_portrait(canvas, Figure(kind=kind, name=name), 0.5, 0.5, 0.3, (120, 60, 40))
    return canvas.image.tobytes()


@pytest.mark.parametrize("kind", ["girl", "boy", "woman", "man", "granny", "old"])
def test_each_kind_looks_its_own(kind: str) -> None:
    assert portrait(kind) != portrait("someone")


def test_silhouettes_are_alike_whoever_is_meant() -> None:
    assert portrait("someone", "Ines") == portrait("someone", "Omar")
    assert portrait("woman", "Ines") != portrait("woman", "Omar")
