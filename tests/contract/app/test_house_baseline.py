"""What the outside sees stays the same while modules move: help, migrations, replays, compiled packs, OpenAPI, names.

The files in `baseline/` were recorded before the move. A change that is meant (a new option, a new migration) is recorded with
`python -m tests.contract.app.test_house_baseline` and committed together with what caused it.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from patra.app.configuration.settings import Settings, StoreSettings
from patra.app.wiring import COMPONENTS, build
from patra.attribution.replay import replay
from patra.cli.main import cli
from patra.cli.reference import PAGES
from patra.ingest.packs import bundled
from patra.ingest.packs.compiler import Overrides, compile_spec, offered_operations
from patra.kernel.db import migrate, open_database
from patra.web.asgi import app
from patra.web.openapi import openapi

BASELINE = Path(__file__).with_name("baseline")
REGENERATE = "python -m tests.contract.app.test_house_baseline"
GIVEN = {
    "oaipmh": {"baseUrl": "https://repository.example.org/oai"},
    "dblp": {"query": "fog"},
    "eric": {"search": "fog"},
    "unpaywall": {"email": "someone@example.org"},
}


def help_of_every_command() -> str:
    return "\n".join(_helps(cli, "patra", None))


def _helps(command: click.Command, name: str, parent: click.Context | None) -> list[str]:
    context = click.Context(command, info_name=name, parent=parent, max_content_width=110, terminal_width=110)
    found = [f"$ {context.command_path} --help\n{command.get_help(context)}\n"]
    if isinstance(command, click.Group):
        for child in sorted(command.list_commands(context)):
            sub = command.get_command(context, child)
            assert sub is not None
            found += _helps(sub, child, context)
    return found


def migrations() -> str:
    lines = [
        f"{part.migrations} {entry.name} {sha256(entry.read_bytes()).hexdigest()}"
        for part in COMPONENTS
        if part.migrations
        for entry in sorted((files(part.migrations) / "sql" / "migrations").iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".sql")
    ]
    return "\n".join(lines) + "\n"


def replay_of_the_log() -> str:
    log = [json.loads(line) for line in (BASELINE / "replay_log.jsonl").read_text("utf-8").splitlines()]
    db = open_database("sqlite:///:memory:")
    try:
        migrate(db, ["patra.kernel", "patra.attribution"])
        return _json(msgspec.to_builtins(replay(log, db)))
    finally:
        db.close()


def fingerprints_of_shipped_packs() -> str:
    lines: list[str] = []
    for name in bundled.names():
        loaded = bundled.pack(name)
        for endpoint in sorted(loaded.pack.endpoints):
            for operation in offered_operations(loaded.pack, endpoint):
                spec = compile_spec(loaded, endpoint, operation, Overrides(params=GIVEN.get(name, {}))).spec
                assert spec is not None
                lines.append(f"{name} {endpoint} {operation.value} {spec.spec_fingerprint}")
    return "\n".join(lines) + "\n"


def openapi_document() -> str:
    patra = build(Settings(store=StoreSettings(url="sqlite:///:memory:")))
    application = app(patra)
    try:
        return _json(_without_type_names(openapi(application.endpoints, tokens=True)))
    finally:
        application.close()
        patra.close(0)


def _without_type_names(document: dict[str, Any]) -> dict[str, Any]:
    """The document with each schema named by its content: how a type is called in the code is not part of the interface."""
    schemas: dict[str, Any] = document["components"]["schemas"]

    def content(value: Any, above: tuple[str, ...]) -> Any:
        if isinstance(value, list):
            return [content(one, above) for one in value]
        if not isinstance(value, dict):
            return value
        if name := str(value.get("$ref", "")).removeprefix("#/components/schemas/"):
            return {"$ref": "recursive" if name in above else _digest(content(schemas[name], (*above, name)))}
        return {key: content(one, above) for key, one in value.items() if key != "title" or not isinstance(one, str)}

    named = {_digest(schema): schema for name in schemas for schema in [content(schemas[name], (name,))]}
    return content({**document, "components": {}}, ()) | {"components": {**document["components"], "schemas": named}}


def _digest(value: Any) -> str:
    return sha256(_json(value).encode()).hexdigest()[:16]


def _sorted_sections(page: str) -> str:
    """A reference page; its sections come in the order of imports, so they are sorted."""
    return "\n## ".join(sorted(section.strip() for section in f"\n{PAGES[page]()}".split("\n## "))).strip() + "\n"


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


RECORDED: dict[str, Callable[[], str]] = {
    "help.txt": help_of_every_command,
    "migrations.txt": migrations,
    "replay_output.json": replay_of_the_log,
    "pack_fingerprints.txt": fingerprints_of_shipped_packs,
    "openapi.json": openapi_document,
    **{f"{page}.md": partial(_sorted_sections, page) for page in ("settings", "metrics", "machines", "reasons")},
}


@pytest.fixture(scope="module")
def made_now(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything made again in a process of its own: other tests declare machines, metrics and reasons, too."""
    folder = tmp_path_factory.mktemp("baseline")
    command = [sys.executable, "-m", "tests.contract.app.test_house_baseline", str(folder)]
    subprocess.run(command, check=True, capture_output=True, cwd=BASELINE.parents[3])
    return folder


@pytest.mark.parametrize("name", RECORDED)
def test_the_outside_is_as_it_was_recorded(name: str, made_now: Path) -> None:
    made = (made_now / name).read_text("utf-8")
    assert made == (BASELINE / name).read_text("utf-8"), f"{name} changed; if that is meant, record it: {REGENERATE}"


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else BASELINE
    for file_name, make in RECORDED.items():
        (target / file_name).write_text(make(), "utf-8")
