"""Turns a title into lettering that fades in and out over the first picture (B6). One font for all scripts."""

import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from PIL import Image, ImageDraw, ImageFilter, ImageFont

from patra.kernel.errors import ConfigInvalid
from patra.studio.vocabulary.reasons import Reason

NOTE = {"zh": "由 Patra 本地绘制与朗读", "en": "drawn and narrated by Patra, without footage"}

_PIECES = re.compile(r"\s+|[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]|[^\s\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]+")

_CLOSING = frozenset("，。！？；：、”’」』）》…")


@lru_cache(maxsize=1)
def font_file() -> Path:
    """Noto Sans SC from the wheel `zhplot`; it has Latin and Chinese letters."""
    spec = find_spec("zhplot")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigInvalid(
            Reason.EXTRA_MISSING,
            "lettering needs the font of zhplot",
            place="studio",
            advice="pip install 'patra[studio]'",
        )
    return Path(spec.submodule_search_locations[0]) / "fonts" / "NotoSansSC-Regular.ttf"


def font(pixels: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(font_file()), pixels)


def title_card(title: str, language: str, width: int, height: int) -> Image.Image:
    """The title and what kind of film this is, as a layer of its own; RGBA."""
    layer = Image.new("RGBA", (width, height), (0, 0, 0, 0))
    base = min(height, width * 0.7)
    lines = wrap_lines(title, width * 0.8, round(base * 0.092))
    size = round(base * (0.092 if len(lines) < 3 else 0.07))
    pen = ImageDraw.Draw(layer)
    y = height * 0.25 - size * 0.62 * len(lines)
    face = font(size)
    for line in lines:
        pen.text((width / 2, y), line, font=face, fill=(252, 246, 232, 255), anchor="ma")
        y += size * 1.28
    pen.line(
        [(width * 0.42, y + size * 0.2), (width * 0.58, y + size * 0.2)],
        fill=(252, 246, 232, 200),
        width=max(1, height // 300),
    )
    note = NOTE.get(language, NOTE["en"])
    pen.text((width / 2, y + size * 0.45), note, font=font(round(base * 0.036)), fill=(252, 246, 232), anchor="ma")
    shade = Image.new("RGBA", (width, height), (12, 8, 18, 0))
    shade.putalpha(
        layer.getchannel("A")
        .filter(ImageFilter.GaussianBlur(height * 0.012))
        .point([min(255, v * 2) for v in range(256)])
    )
    shade.alpha_composite(layer)
    return shade


def wrap_lines(text: str, width: float, size: int, most: int = 4) -> list[str]:
    """Lines no wider than the width, broken between words or Chinese characters; what is too much ends in dots."""
    face = font(size)
    lines: list[str] = [""]
    for piece in _PIECES.findall(text):
        parts = [piece] if face.getlength(piece) <= width else list(piece)  # a word wider than the picture
        for part in parts:
            hangs = part in _CLOSING  # no line begins with it
            if face.getlength((lines[-1] + part).strip()) > width and not hangs:
                lines.append("")
            lines[-1] = (lines[-1] + part).lstrip()
    if len(lines) > most:
        lines = [*lines[: most - 1], lines[most - 1][:-1] + "…"]
    return [line.strip() for line in lines]
