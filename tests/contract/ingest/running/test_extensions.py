"""Extensions by entry points: signing, authentication, paging, decoding; imported only when a pack names them."""

import hmac
import sys
import tomllib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from patra.ingest.packs.extensions import ExtensionPoint, extension_names
from patra.kernel.clock import format_instant
from patra.kernel.db import open_database
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import Reply, crowded

EXAMPLE = Path(__file__).parents[4] / "examples" / "ingest-extensions"
ITEMS = sorted(crowded(60, T0, T1, crowd=False), key=lambda item: item.id)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example as an installer would leave it: its module and its entry points on the path."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))["project"]
    folder = tmp_path / "site"
    info = folder / "library_extensions-1.0.0.dist-info"
    info.mkdir(parents=True)
    (folder / "library_extensions.py").write_text((EXAMPLE / "library_extensions.py").read_text("utf-8"), "utf-8")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0.0\n", "utf-8")
    lines = [
        line
        for group, entries in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    monkeypatch.syspath_prepend(str(folder))
    yield
    sys.modules.pop("library_extensions", None)


def catalogue(w: World) -> dict[str, Any]:
    """A pack that uses all four."""
    tree = pack(
        w.url,
        "TOKEN",
        pagination={"nextTokenPath": None, "nextTokenHook": "library_last_id", "initial": {"token": "0"}},
        response={"decoder": "library_csv", "totalPath": None},
        auth={
            "type": "CUSTOM",
            "credentialRef": "account",
            "tokenHook": "library_login",
            "signingHook": "library_signature",
            "location": "QUERY",
            "name": "session",
        },
        window={"maxWindow": "P2D"},
    )
    tree["credentials"] = {
        "account": {"type": "CUSTOM", "secrets": {"user": "env:LIB_USER", "password": "env:LIB_PASSWORD"}}
    }
    return tree


def served(w: World) -> list[dict[str, str]]:
    """The library's server: a session for the right password, and a list in CSV for that session, signed."""
    lists: list[dict[str, str]] = []

    def answer(method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
        if path == "/login":
            right = b'"open sesame"' in body and method == "POST"
            return Reply(
                status=200 if right else 403, body=b'{"session": "s-1", "seconds": 600}', kind="application/json"
            )
        digest = hmac.new(b"open sesame", query.get("stamp", "").encode(), sha256).hexdigest()
        if query.get("session") != "s-1" or query.get("sig") != digest:
            return Reply(status=401, body=b"{}", kind="application/json")
        lists.append(query)
        rest = [item for item in ITEMS if item.id > query["token"]][: int(query["size"])]
        rows = [f"{item.id},{format_instant(item.updated)},{item.title}" for item in rest]
        text = "\n".join([query["size"], "id,updated,title", *rows])
        return Reply(status=200, body=text.encode(), kind="text/csv")

    w.provider._served = answer  # type: ignore[method-assign]
    return lists


@pytest.mark.usefixtures("installed")
def test_a_pack_that_names_them_uses_all_four(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIB_USER", "reader")
    monkeypatch.setenv("LIB_PASSWORD", "open sesame")
    assert "library_csv" in extension_names(ExtensionPoint.DECODING)
    assert "library_extensions" not in sys.modules, "looking for names imports nothing"
    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}", synchronous="OFF")
    with world(db, ITEMS) as w:
        lists = served(w)
        w.load(catalogue(w))
        assert "library_extensions" not in sys.modules, "a pack is checked without running them"
        w.trigger()
        w.drain()
        assert set(w.landed()) == {item.id for item in ITEMS}
        assert [one["token"] for one in lists] == ["0", ITEMS[24].id, ITEMS[49].id]
    db.close()


@pytest.mark.usefixtures("installed")
def test_a_paging_hook_that_raises_fails_its_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIB_USER", "reader")
    monkeypatch.setenv("LIB_PASSWORD", "open sesame")
    hook = tmp_path / "site" / "library_extensions.py"
    hook.write_text(hook.read_text("utf-8") + "\n\ndef last_id(page):\n    raise LookupError('no last row')\n", "utf-8")
    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}", synchronous="OFF")
    with world(db, ITEMS) as w:
        served(w)
        w.load(catalogue(w))
        w.trigger()
        w.drain()
        assert w.tasks() == {"FAILED i_broken": 1}
        [(error,)] = w.rows("SELECT error FROM ing_task_run")
        assert "the paging hook failed on a page: LookupError: no last row" in error
    db.close()


def test_one_that_is_not_installed_refuses_the_pack(tmp_path: Path) -> None:
    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}", synchronous="OFF")
    with world(db, []) as w, pytest.raises(AssertionError, match="no 'library_csv' is installed in the group"):
        w.load(catalogue(w))
    db.close()
