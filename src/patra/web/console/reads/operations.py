"""The files of others that the console serves."""

import tomllib
from importlib.resources import files
from typing import Any


def vendored_files() -> list[dict[str, Any]]:
    text = (files("patra.web.console") / "static" / "vendor" / "vendor.toml").read_text()
    return tomllib.loads(text)["file"]
