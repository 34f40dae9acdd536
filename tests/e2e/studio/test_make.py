"""The real command line: a short chapter becomes a film that can be watched; runs are listed and shown."""

import json
import subprocess
import sys
from pathlib import Path

from patra.studio.film.ffmpeg import probe

CHAPTER = "The Test\n\nThe sea was calm at dusk.\n\nA boat came home."


def patra(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "patra", *words], cwd=folder, capture_output=True, text=True, timeout=240
    )


def test_make_writes_a_film_and_the_run_can_be_shown(tmp_path: Path) -> None:
    (tmp_path / "chapter.txt").write_text(CHAPTER, "utf-8")
    done = patra(tmp_path, "studio", "make", "chapter.txt", "-o", "film.mp4")
    assert done.returncode == 0, done.stderr
    found = probe(tmp_path / "film.mp4")
    assert found.streams == ("Video", "Audio", "Subtitle")
    assert (found.width, found.height) == (854, 480)
    assert not list(tmp_path.glob(".film*"))
    (run,) = json.loads(patra(tmp_path, "studio", "runs", "--json").stdout)
    assert run["stage"] == "completed"
    shown = json.loads(patra(tmp_path, "studio", "show", run["run_id"], "--json").stdout)
    assert shown["film_ms"] == found.duration_ms or abs(shown["film_ms"] - found.duration_ms) <= 100
    refused = patra(tmp_path, "studio", "cancel", run["run_id"])
    assert refused.returncode == 5
    assert "s_run_not_running" in refused.stderr


def test_a_chapter_without_words_is_refused_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "chapter.txt").write_text("…", "utf-8")
    done = patra(tmp_path, "studio", "make", "chapter.txt", "-o", "film.mp4")
    assert done.returncode == 5
    assert "s_chapter_empty" in done.stderr
