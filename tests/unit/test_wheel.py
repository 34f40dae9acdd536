"""The wheel holds what a user runs and nothing else, and can be installed."""

import ast
import tomllib
import zipfile
from pathlib import Path

import pytest

from patra.app.doctor import EXTRAS
from tests.prove.wheel import UnavailableError, build_wheel, extras, install, modules_there, run_patra

ROOT = Path(__file__).parents[2]
SUFFIXES = {
    ".py": "",
    ".sql": "statements and migrations",
    ".yaml": "packs, contracts, dictionaries",
    ".html": "templates of the console",
    ".css": "its style",
    ".js": "its program",
    ".svg": "its icon",
    ".toml": "what the vendored programs are",
    ".json": "the released contracts of the bus",
    ".lua": "the rate gate in Redis",
    ".txt": "given names, with their licence",
    ".typed": "the mark of PEP 561",
}
NOT_SHIPPED = {
    "patra/cli/citations.py",
    "patra/cli/machine_svg.py",
    "patra/cli/reference.py",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return build_wheel(tmp_path_factory.mktemp("built"))
    except UnavailableError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    return zipfile.ZipFile(wheel).namelist()


def test_the_wheel_holds_every_file_of_the_package_but_the_tools_of_developers(names: list[str]) -> None:
    source = ROOT / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in (source / "patra").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if not name.split("/")[0].endswith(".dist-info")} == expected - NOT_SHIPPED
    assert expected >= NOT_SHIPPED


def test_the_wheel_holds_kinds_of_files_that_are_known(names: list[str]) -> None:
    kinds = {Path(name).suffix for name in names if not name.split("/")[0].endswith(".dist-info")}
    assert kinds == set(SUFFIXES)


def test_the_wheel_holds_no_fixtures_of_tests(names: list[str]) -> None:
    parts = {part for name in names for part in name.split("/")}
    assert not parts & {"tests", "hostile", "fixtures", "conftest.py"}
    assert not [part for part in parts if part.startswith("test_") or part.endswith("_test.py")]


def test_nothing_in_the_wheel_imports_what_is_not_in_it() -> None:
    missing = {name.removesuffix(".py").replace("/", ".") for name in NOT_SHIPPED}
    found: list[str] = []
    for path in (ROOT / "src" / "patra").rglob("*.py"):
        name = path.relative_to(ROOT / "src").as_posix()
        if name in NOT_SHIPPED or not any(one.rpartition(".")[2] in path.read_text("utf-8") for one in missing):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                imported = {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
            elif isinstance(node, ast.Import):
                imported = {one.name for one in node.names}
            else:
                continue
            found += [f"{name}: {one}" for one in imported & missing]
    assert not found


def test_the_doctor_knows_every_extra() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(EXTRAS) == set(declared) == set(extras())


def test_the_wheel_is_installed_with_an_extra_in_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    """One extra, offline; `./dev prove wheel` tries each."""
    try:
        programs = install(wheel, "nats", tmp_path)
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert modules_there(programs) == {"nats"}
    assert run_patra(programs, tmp_path, "--version").stdout.startswith("patra, version ")
    made = run_patra(programs, tmp_path, "migrate")
    assert (made.returncode, made.stderr) == (0, "")
