"""Files fit a reader, folders fit a screen: at most 400 lines a file, some fifteen modules a folder."""

import ast
import re
from pathlib import Path

import pytest

from tests.source_tree import ROOT

MAX_LINES = 400
MAX_MODULES = 15


def _folders() -> dict[str, int]:
    """Each folder with its modules, beside `__init__` and its sub-folders."""
    found = [path.parent.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if path.name != "__init__.py"]
    return {folder: found.count(folder) for folder in sorted(set(found))}


FILES = sorted(ROOT.rglob("*.py"))


def test_no_file_has_more_than_four_hundred_lines() -> None:
    longer = {
        path.relative_to(ROOT).as_posix(): lines
        for path in FILES
        if (lines := len(path.read_text("utf-8").splitlines())) > MAX_LINES
    }
    assert not longer


def test_no_folder_has_more_modules_than_a_screen_shows() -> None:
    assert {name: count for name, count in _folders().items() if count > MAX_MODULES} == {}


def test_every_folder_of_modules_is_a_package_that_says_what_it_is_for() -> None:
    silent = [
        path.parent.relative_to(ROOT).as_posix()
        for path in FILES
        if not (path.parent / "__init__.py").read_text("utf-8").lstrip().startswith('"""')
    ]
    assert not silent


def _map_of(init: Path) -> set[str]:
    """Modules and folders that the table in a package's docstring names; empty where it has none."""
    first = [
        line.split("|")[1]
        for line in (ast.get_docstring(ast.parse(init.read_text("utf-8"))) or "").splitlines()
        if line.startswith("| ")
    ]
    words = re.findall(r"[a-z_0-9]+(?=`|\.py|/|,|\s|$)", " ".join(first))
    return set(words)


@pytest.mark.parametrize("package", [p.parent.relative_to(ROOT).as_posix() for p in FILES if p.name == "__init__.py"])
def test_the_map_of_a_package_names_all_of_its_modules(package: str) -> None:
    folder = ROOT / package
    named = _map_of(folder / "__init__.py")
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    if named & modules:
        assert modules - named == set()


@pytest.mark.parametrize("package", [p.parent.relative_to(ROOT).as_posix() for p in FILES if p.name == "__init__.py"])
def test_a_name_in_code_font_on_a_map_is_there(package: str) -> None:
    folder = ROOT / package
    rows = [
        line.split("|")[1]
        for line in (folder / "__init__.py").read_text("utf-8").splitlines()
        if line.startswith("| `")
    ]
    names = [name.rstrip("/") for row in rows for name in re.findall(r"`([a-z_0-9]+/?)`", row)]
    assert [name for name in names if not (folder / name).is_dir() and not (folder / f"{name}.py").exists()] == []
