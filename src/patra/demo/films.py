"""The studio step: two short chapters are submitted; their films are made while one looks around."""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from patra.demo import Demo, Link

ENGLISH = """\
A child folds a boat of white paper by the window.

The river takes it past the sleeping houses.

"Come back," says the child, and the boat turns toward the light."""
CHINESE = """\
孩子在窗边折了一只白色的纸船。

河水带着它经过沉睡的房子。

“回来吧。”孩子说。纸船朝着光驶去。"""
CHAPTERS = {"en": ("The paper boat", ENGLISH), "zh": ("纸船", CHINESE)}
LIBRARIES = ("numpy", "PIL", "imageio_ffmpeg")


def prepare(folder: Path) -> Mapping[str, Any]:
    return {"studio.folder": str(folder / "films"), "studio.workers": 1}


def show(demo: Demo) -> Iterator[str]:
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        yield f"no films: the extra is not installed ({', '.join(missing)}); pip install 'patra[studio]'"
        return
    if demo.once:
        yield "no films: they take longer than a demonstration that ends by itself"
        return
    for language, (title, text) in CHAPTERS.items():
        body = {"chapter": text, "title": title, "language": language, "task_id": f"demo-{language}"}
        status, answer = demo.post("/studio/runs", body)
        if status >= 300:
            raise RuntimeError(f"the studio answered {status}: {answer}")
        yield f"submitted: {title}, about ten seconds ({answer['run_id']})"
        if language == "en":
            path = f"/console/studio/run/{answer['run_id']}"
            demo.walk.insert(
                0, Link(path=path, text="a film: its shots, its jobs, and the film to play as soon as it is made")
            )
    yield "they are made in the background; the pages of the studio show each shot as it is done"
