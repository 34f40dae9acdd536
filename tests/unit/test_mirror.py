"""tests/unit mirrors src: the tests of a module are found by its name."""

from pathlib import Path

import pytest

from tests.source_tree import ROOT

UNIT = Path(__file__).parent
EXCEPTIONS = {
    "attribution/test_specification.py": "reads the specification",
    "bus/test_rules.py": "reads the names of all tests of the bus",
    "ingest/packs/test_field_effects.py": "reads the names of the tests of all fields of the pack format",
    "studio/script/test_chapters.py": "thirty chapters through the whole script",
    "web/console/pages/test_pages.py": "reads all pages",
    "test_deploy.py": "deploy/ is not a part of the package",
    "test_docs.py": "the documentation",
    "test_guards.py": "reads all of the source",
    "test_house.py": "counts lines and modules of all of the source",
    "test_licences.py": "the licences of what is installed",
    "test_map.py": "reads the map of the documentation",
    "test_mirror.py": "reads the tests",
    "test_runbook.py": "a page of the documentation",
    "test_public_api.py": "the package itself",
    "test_wheel.py": "the built distribution",
}
"""Modules of tests that belong to no single module of src, and why."""


def _modules() -> list[Path]:
    return sorted(path.relative_to(UNIT) for path in UNIT.rglob("test_*.py"))


def _tested(module: Path) -> bool:
    """Whether a module or package of src has the name of the tests, or the beginning of it: `test_client_secrets.py`."""
    folder, words = ROOT / module.parent, module.stem.removeprefix("test_").split("_")
    names = ["_".join(words[:count]) for count in range(1, len(words) + 1)]
    if any((folder / f"{name}.py").exists() or (folder / name / "__init__.py").exists() for name in names):
        return True
    return not [path for path in folder.glob("*.py") if path.stem != "__init__"] and folder.is_dir()  # data alone


@pytest.mark.parametrize("module", _modules(), ids=str)
def test_a_module_of_tests_is_named_after_a_module_or_package_of_src(module: Path) -> None:
    assert _tested(module) or module.as_posix() in EXCEPTIONS


@pytest.mark.parametrize("folder", sorted({path.parent for path in _modules()}), ids=str)
def test_a_folder_of_tests_is_a_package_of_src(folder: Path) -> None:
    assert (ROOT / folder).is_dir()


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_an_exception_is_still_needed(name: str) -> None:
    assert (UNIT / name).exists()
    assert not _tested(Path(name))
