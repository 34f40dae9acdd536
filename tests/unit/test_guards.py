"""What is declared has an effect (ruling I13): codes are given, metrics counted, machines obeyed, settings read, functions called.

The guards read the source: a name counts as used when the source refers to the very object, not to a namesake.
"""

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest
from prometheus_client.metrics import MetricWrapperBase

from patra.app.configuration.settings import Settings
from patra.app.configuration.settings_section import Section
from patra.kernel.machine import Machine
from patra.kernel.reason import ReasonCode
from tests.source_tree import ROOT, Source, sources

MOVES = {"move", "target", "allows", "edges"}
COUNTS = {"inc", "dec", "set", "observe", "labels", "set_function", "time", "clear", "remove"}
PUBLIC_NAMES = {
    "binary",  # the CloudEvents binary mode, for programs that send it
    "check_sql",  # the CHECK of a state column, for the migrations of an engine
    "Client",
    "DurableClient",
    "declare_file",  # patra.Bus
    "ingest_run",
    "group_loops",  # an engine's own consumers (docs/reference/bus.md)
    "ManualClock",  # for tests of programs that use Patra
    "rendition",  # publishing an event in two majors at once (C§4)
    "run_until_idle",  # patra.Bus
}
"""Names that are there for people who import Patra, so that our own source need not call them."""

DOCUMENTATION = {
    "pack_page": "pack.md",
    "expression_page": "pack-expressions.md",
    "planning_page": "ingest-planning.md",
    "sources_page": "sources.md",
}
"""Functions that write a page of docs/reference; a test holds the page to them."""


def _names(node: ast.expr) -> list[str] | None:
    """`a.b.c` as its parts, or None where it is anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return [node.id, *reversed(parts)]


def _resolved(source: Source, names: list[str]) -> object | None:
    """The object that the names mean in a module: one of its own, or one that a function of it imports."""
    first, *rest = names
    found: object | None = getattr(source.module, first, None) or _late_imports(source.path, source.tree).get(first)
    for name in rest:
        found = getattr(found, name, None)
        if found is None:
            return None
    return found


@cache
def _late_imports(_: Path, tree: ast.Module) -> dict[str, object]:
    """What functions import for themselves (commands do, so that `--help` starts fast)."""
    found: dict[str, object] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("patra") and node.col_offset:
            module = importlib.import_module(node.module)
            for name in node.names:
                found[name.asname or name.name] = getattr(module, name.name, None)
    return found


def _attributes() -> Iterator[tuple[Source, object, str]]:
    """Each `owner.name` of the source whose owner is a module-level object, with that object."""
    for source in sources():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Attribute) and (names := _names(node.value)):
                owner = _resolved(source, names)
                if owner is not None:
                    yield source, owner, node.attr


@cache
def _attributes_by_owner() -> dict[int, set[str]]:
    used: dict[int, set[str]] = {}
    for _, owner, name in _attributes():
        used.setdefault(id(owner), set()).add(name)
    return used


def _subclasses(kind: type[ReasonCode]) -> Iterator[type[ReasonCode]]:
    for sub in kind.__subclasses__():
        yield sub
        yield from _subclasses(sub)


@cache
def reason_classes() -> tuple[type[ReasonCode], ...]:
    sources()
    return tuple(kind for kind in _subclasses(ReasonCode) if kind.__module__.startswith("patra."))


def test_every_reason_code_is_given_somewhere_in_the_source() -> None:
    used = _attributes_by_owner()
    never = [
        f"{kind.__module__}.{kind.__name__}.{member.name} ({member.value})"
        for kind in reason_classes()
        for member in kind
        if member.name not in used.get(id(kind), set())
    ]
    assert reason_classes()
    assert never == []


def test_every_metric_is_counted_somewhere_in_the_source() -> None:
    used = _attributes_by_owner()
    metrics = {
        id(value): f"{source.module.__name__}.{name}"
        for source in sources()
        for name, value in vars(source.module).items()
        if isinstance(value, MetricWrapperBase)
    }
    passed = _passed_by_calls()
    assert metrics
    assert [name for key, name in metrics.items() if not (COUNTS & used.get(key, set()) or key in passed)] == []


@cache
def _passed_by_calls() -> set[int]:
    """What is handed to a function as an argument: `line.meter(metrics.BATCHES).inc()`, `advance(tx, PLAN, …)`."""
    found: set[int] = set()
    for source in sources():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call):
                for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                    names = _names(argument)
                    if names and (value := _resolved(source, names)) is not None:
                        found.add(id(value))
    return found


def test_every_state_machine_is_the_one_that_moves_its_rows() -> None:
    used = _attributes_by_owner()
    machines: dict[int, str] = {
        id(value): f"{source.module.__name__}.{name}"
        for source in sources()
        for name, value in vars(source.module).items()
        if isinstance(value, Machine)
    }
    assert machines
    passed = _passed_by_calls()
    assert [name for key, name in machines.items() if not (MOVES & used.get(key, set()) or key in passed)] == []


def _sections(kind: type[Section]) -> Iterator[tuple[type[Section], str]]:
    for field in msgspec.structs.fields(kind):
        if isinstance(field.type, type) and issubclass(field.type, Section):
            yield from _sections(field.type)
        else:
            yield kind, field.encode_name


def test_every_setting_is_read_outside_its_declaration() -> None:
    home = Path(str(importlib.import_module(Settings.__module__).__file__))
    read = {
        node.attr
        for source in sources()
        if source.path != home
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    assert [f"{kind.__name__}.{name}" for kind, name in _sections(Settings) if name not in read] == []


def _definitions() -> Iterator[tuple[Source, str, int]]:
    for source in sources():
        for node in source.tree.body:
            bodies = node.body if isinstance(node, ast.ClassDef) else []
            for item in (node, *bodies):
                match item:
                    case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if not item.decorator_list:
                        yield source, item.name, item.lineno
                    case ast.Assign(targets=[ast.Name(id=name)]) if item is node and name.isupper():
                        yield source, name, item.lineno
                    case ast.AnnAssign(target=ast.Name(id=name)) if item is node and name.isupper():
                        yield source, name, item.lineno
                    case _:
                        pass


@cache
def _mentions() -> dict[str, int]:
    """How often each name is read anywhere in the source or the documentation's configuration."""
    counts: dict[str, int] = {}
    trees = [source.tree for source in sources()]
    configuration = ROOT.parents[1] / "docs" / "conf.py"
    if configuration.exists():
        trees.append(ast.parse(configuration.read_text()))
    for tree in trees:
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                    counts[name] = counts.get(name, 0) + 1
                case ast.Constant(value=str(text)):  # lazy tables name what they load
                    for part in text.replace(":", ".").split("."):
                        counts[part] = counts.get(part, 0) + 1
                case _:
                    pass
    return counts


def _overrides(source: Source, name: str) -> bool:
    """Whether a class of the module inherits the name from a library: then the library calls it."""
    for kind in vars(source.module).values():
        if isinstance(kind, type) and name in vars(kind):
            for base in kind.__mro__[1:]:
                if name in vars(base) and not base.__module__.startswith("patra."):
                    return True
    return False


def test_no_function_class_or_constant_is_used_by_tests_alone() -> None:
    called = _mentions()
    idle = [
        f"{source.module.__name__}.{name} (line {line})"
        for source, name, line in _definitions()
        if not (
            name.startswith("__")
            or name in called
            or name in PUBLIC_NAMES
            or name in DOCUMENTATION
            or _overrides(source, name)
        )
        and not name.startswith(("do_", "visit_"))
    ]
    assert idle == []


@pytest.mark.parametrize("name", sorted(PUBLIC_NAMES))
def test_a_public_name_is_still_defined(name: str) -> None:
    assert any(defined == name for _, defined, _ in _definitions())


@pytest.mark.parametrize(("name", "page"), DOCUMENTATION.items())
def test_a_function_that_writes_a_page_is_defined_and_its_page_is_there(name: str, page: str) -> None:
    assert any(defined == name for _, defined, _ in _definitions())
    assert (ROOT.parents[1] / "docs" / "reference" / page).exists()
