"""Files that the console serves: what is of others is what its list says, small enough, and nothing comes from outside."""

import re
import tomllib
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from patra.web.console.assets import asset_response, assets

CONSOLE = files("patra.web.console")
STATIC = Path(str(CONSOLE / "static"))
TEMPLATES = Path(str(CONSOLE / "templates"))
BUDGET_BYTES = 90_000


def test_vendored_files_are_those_of_the_list():
    listed = tomllib.loads((STATIC / "vendor" / "vendor.toml").read_text())
    there = {path.name for path in (STATIC / "vendor").iterdir()} - {"vendor.toml"}
    assert there == {entry["name"] for entry in listed["file"]}
    for entry in listed["file"]:
        content = (STATIC / "vendor" / entry["name"]).read_bytes()
        assert sha256(content).hexdigest() == entry["sha256"]
        assert entry["version"] in entry["source"]
        assert "Permission to use, copy, modify" in listed["licences"][entry["licence"]]


def test_assets_keep_to_their_budget():
    assert sum(len(asset.compressed) for asset in assets().values()) < BUDGET_BYTES


def test_an_asset_is_found_by_its_hash_alone():
    asset = assets()["console.css"]
    found = asset_response(f"{asset.digest}/console.css", "")
    assert found is not None
    assert (found.body, found.headers["content-type"]) == (asset.content, "text/css; charset=utf-8")
    assert "immutable" in found.headers["cache-control"]
    assert asset_response("000000000000/console.css", "") is None
    assert asset_response(f"{asset.digest}/../application.py", "") is None


def test_nothing_is_loaded_from_elsewhere():
    texts = [path.read_text() for path in (*STATIC.glob("*.css"), *STATIC.glob("*.js"), *TEMPLATES.rglob("*.html"))]
    assert len(texts) > 40
    for text in texts:
        assert not re.search(r"(src|href|url\()\s*=?\s*[\"'(]?(https?:)?//", text)


def test_templates_have_no_inline_style_or_script():
    for path in TEMPLATES.rglob("*.html"):
        text = path.read_text()
        assert not re.search(r"\sstyle=|<style|\son\w+=|javascript:|hx-on|\|safe", text), path
        assert not re.search(r"<script(?![^>]*\ssrc=)", text), path
