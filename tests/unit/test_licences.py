"""The licence page names every package that an installation brings, and says which bring programs under the GPL."""

import json
import re
import runpy
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def licences() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "licences.py"))


def test_every_package_is_on_the_page(licences: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "reference" / "licences.md").read_text("utf-8")
    found = licences["closure"](licences["EXTRAS"])
    missing = [name for name in found if f"| {name} | " not in page]  # versions differ between Pythons
    assert missing == [], "run ./dev licences"


def test_programs_under_the_gpl_come_with_the_studio_alone(licences: dict[str, Any]) -> None:
    found = licences["closure"](licences["EXTRAS"])
    assert found["imageio-ffmpeg"] == {"studio"}
    assert found["espeakng-loader"] == {"studio"}
    page = (ROOT / "docs" / "reference" / "licences.md").read_text("utf-8")
    assert "ffmpeg, which is GPL" in page
    assert "eSpeak NG, which is GPL-3.0-or-later" in page


def test_the_sbom_names_packages_by_version_and_hash(licences: dict[str, Any]) -> None:
    made = licences["sbom"]({"click": {""}}, {"click": {"License": "BSD-3-Clause"}})
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    [click] = made["components"]
    assert click["purl"] == f"pkg:pypi/click@{version('click')}"
    assert click["licenses"] == [{"license": {"name": "BSD-3-Clause"}}]
    assert len(click["hashes"]) >= 1
    json.dumps(made)


def test_what_dev_fetches_before_the_lock_is_fetched_by_hash_too() -> None:
    installs = [line for line in _joined_lines(ROOT / "dev") if "pip install" in line and "$UV" not in line]
    assert len(installs) == 1
    assert "--require-hashes --only-binary :all: --requirement requirements-uv.txt" in installs[0]
    (pinned,) = [line for line in _joined_lines(ROOT / "requirements-uv.txt") if not line.startswith("#")]
    requirement, *hashes = pinned.split()
    assert re.fullmatch(r"uv==[0-9.]+", requirement)
    assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", one) for one in hashes)
    assert len(set(hashes)) >= 4  # x86_64 and aarch64, Linux and macOS


def _joined_lines(file: Path) -> list[str]:
    """The lines of a file, continued ones as one, blanks as one."""
    text = file.read_text("utf-8").replace("\\\n", " ")
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]
