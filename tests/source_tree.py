"""Every module of Patra, imported and parsed, for tests that read the source."""

import ast
import importlib
import pkgutil
from functools import cache
from pathlib import Path
from types import ModuleType

import msgspec

import patra

ROOT = Path(patra.__file__).parent


class Source(msgspec.Struct, frozen=True):
    """One module: where it stands, its tree, and the module itself."""

    path: Path
    tree: ast.Module
    module: ModuleType


@cache
def sources() -> tuple[Source, ...]:
    found: list[Source] = []
    for info in pkgutil.walk_packages([str(ROOT)], "patra."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        path = Path(str(module.__file__))
        found.append(Source(path, ast.parse(path.read_text("utf-8")), module))
    return tuple(found)
