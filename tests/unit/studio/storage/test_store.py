"""Modules learn of each other by events: none reads or writes a table of another."""

import ast
import re
from pathlib import Path

from patra.studio.storage import store

STUDIO = Path(store.__file__).parents[1]
OWNED = {
    "gateway": {"stu_task"},
    "orchestrator": {"stu_run", "stu_job", "stu_artifact"},
    "planner": {"stu_plan", "stu_edit"},
    "router": set(),
    "hub": {"stu_work"},
    "composer": {"stu_film", "stu_part", "stu_artifact"},
    "observer": {"stu_note"},
    "supervisor": set(),
    "workers/worker_loop": set(),
}
FILES = {"composer": ("composer", "film_parts"), "orchestrator": ("orchestrator", "job_needs")}


FOR_0_2_0 = {
    "composer": {"stu_run", "stu_job"},
    "planner": {"stu_run"},
}  # what `earlier_release` reads for them while that release is at work


def tables_of_functions(file: str) -> dict[str, set[str]]:
    """By function of a module in `storage/`: the tables of its statements and of the store's functions it calls."""
    tree = ast.parse((STUDIO / "storage" / f"{file}.py").read_text("utf-8"))
    found = {node.name: tables_in(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    if file == "store":
        return found
    called = {node.name: called_of(node, "store") for node in tree.body if isinstance(node, ast.FunctionDef)}
    return {name: tables | called[name] for name, tables in found.items()}


def called_of(tree: ast.AST, file: str) -> set[str]:
    """Tables behind the functions of `storage/` that code calls as `file.function`."""
    functions, found = tables_of_functions(file), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == file:
            found |= functions.get(node.attr, set())
    return found


def tables_in(tree: ast.AST) -> set[str]:
    """Tables that code names itself, or by the names of its statements."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"stu_\w+", node.value):
            found.add(node.value)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Q":
            assert isinstance(node.slice, ast.Constant)
            found |= set(re.findall(r"\bstu_\w+", store.Q[str(node.slice.value)].text["sqlite"]))
    return found


def used_by(module: str, through: str = "store") -> set[str]:
    found = set[str]()
    for file in FILES.get(module, (module,)):
        tree = ast.parse((STUDIO / f"{file}.py").read_text("utf-8"))
        found |= called_of(tree, through) | (tables_in(tree) if through == "store" else set())
    return found


def test_a_module_uses_no_table_of_another():
    assert {module: used_by(module) - own for module, own in OWNED.items() if used_by(module) - own} == {}


def test_only_what_0_2_0_leaves_out_is_read_from_a_table_of_another():
    assert {m: foreign for m, own in OWNED.items() if (foreign := used_by(m, "earlier_release") - own)} == FOR_0_2_0


def test_what_a_module_uses_is_found_by_its_statements_and_by_the_functions_that_it_calls():
    assert {module: used_by(module) for module in ("gateway", "composer", "planner")} == {
        "gateway": {"stu_task"},
        "composer": {"stu_film", "stu_part", "stu_artifact"},
        "planner": {"stu_plan", "stu_edit"},
    }
