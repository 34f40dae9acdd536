"""docs/explanation/map.md leads to files that are there, in walks of at most twelve steps."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "map.md"
TEXT = PAGE.read_text("utf-8")
LINKS = re.findall(r"\]\((\.\./[^)]+)\)", TEXT)
NAMED = re.findall(r"\[([^\]]+\.py)\]\((\.\./[^)]+)\)", TEXT)
WALKS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("link", LINKS)
def test_a_link_of_the_map_leads_to_a_file(link: str) -> None:
    assert (PAGE.parent / link).resolve().is_file()


@pytest.mark.parametrize(("name", "link"), NAMED, ids=[name for name, _ in NAMED])
def test_a_link_of_the_map_is_named_after_its_file(name: str, link: str) -> None:
    assert link.endswith(f"/{name}")


@pytest.mark.parametrize("subject", ["One event", "One page", "One envelope", "One chapter"])
def test_a_walk_has_at_most_twelve_steps_each_with_a_link(subject: str) -> None:
    (walk,) = [body for title, body in WALKS.items() if title.startswith(subject)]
    steps = re.findall(r"^\d+\. (.+)$", walk, re.MULTILINE)
    assert 1 < len(steps) <= 12
    assert all("](" in step for step in steps)


def test_every_package_and_folder_stands_on_the_map() -> None:
    source = PAGE.parents[2] / "src" / "patra"
    screen = TEXT.split("```text\n")[1].split("```")[0]
    for package in ("kernel", "attribution", "ingest", "bus", "studio", "app", "web", "cli"):
        assert f"{package}/" in screen
    for package in ("kernel", "attribution", "ingest", "bus", "studio", "app", "web", "cli"):
        for folder in (source / package).iterdir():
            if (folder / "__init__.py").exists():
                assert f"{folder.name}/" in screen, folder
