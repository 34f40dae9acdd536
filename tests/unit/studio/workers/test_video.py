"""Pictures of model servers, of whatever form."""

from pathlib import Path

import pytest
from PIL import Image

from patra.studio.paint.frames import ShotFrames
from patra.studio.paint.scene import ROOM
from patra.studio.script.shots import Picture
from patra.studio.workers.video import layers_of_picture

SHOT = ShotFrames(
    picture=Picture(place="sea", time="dusk", weather="clear", mood="calm"),
    before=None,
    cut="open",
    leaves="cut",
    title="",
    language="en",
    frames=1,
    fps=8,
    width=160,
    height=90,
)


@pytest.mark.parametrize("size", [(320, 180), (5_000, 1), (1, 5_000), (1, 1)])
def test_a_picture_is_cut_before_it_is_scaled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    """Scaled first, a strip of one line becomes as long as it is thin, and fills the memory."""
    Image.new("RGB", size, "red").save(tmp_path / "served", "PNG")
    scaled: list[tuple[int, int]] = []
    resize = Image.Image.resize

    def noted(image: Image.Image, to: tuple[int, int], *args: object, **kwargs: object) -> Image.Image:
        scaled.append(to)
        return resize(image, to, *args, **kwargs)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(Image.Image, "resize", noted)
    found = layers_of_picture(tmp_path / "served", SHOT)
    wanted = (round(160 * ROOM), round(90 * ROOM))
    assert (found.back.size, scaled) == (wanted, [wanted])
