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


PARTICIPLES = frozenset(
    re.findall(
        r"\w+",
        "told made kept held sent found given taken known seen written shown said done left lost built begun gone drawn "
        "born spoken broken chosen heard meant paid led grown thrown bought brought caught fed fought laid lent lit met "
        "sold stood struck swept taught thought torn understood woken won wound hidden driven fallen forgotten frozen "
        "withdrawn rewritten rebuilt unknown unseen untold",
    )
)
NO_PARTICIPLES = frozenset({"bed", "embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed"})
NAMES_THAT_STAY = {
    "shared": "`shared` and `exclusive` are the two sides of a lock",
    "lost": "`Hold.lost` is read by the long handlers of users",
    "refused": "`Drained.refused` is part of what `patra.ingest_run` gives",
}


def _is_participle(name: str) -> bool:
    word = name.lstrip("_")
    return word in PARTICIPLES or (word.endswith("ed") and "_" not in word and word not in NO_PARTICIPLES)


def _is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether its name is a command that people type."""
    return any(".command" in ast.unparse(decorator) for decorator in function.decorator_list)


def test_functions_are_named_by_a_verb_or_a_noun_and_not_by_a_bare_participle() -> None:
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{node.lineno} {node.name}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if _is_participle(node.name) and node.name not in NAMES_THAT_STAY and not _is_command(node)
    ]
    assert not found
