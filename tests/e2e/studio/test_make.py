"""The real command line: short chapters become films that can be watched; runs are listed and shown."""

import json
import re
import subprocess
import sys
from contextlib import redirect_stderr
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from patra.cli.main import run
from patra.studio.film.ffmpeg import decode_samples, executable, lengths, probe

CHAPTERS = {
    "en": "The Test\n\nThe sea was calm at dusk.\n\nA boat came home.",
    "zh": "纸船\n\n清晨，江面上有雾。\n\n小满坐在石桥上。",
}
RATE = 8000
TUTORIAL = Path(__file__).parents[3] / "docs" / "tutorial" / "first-film.md"


def patra(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "patra", *words], cwd=folder, capture_output=True, text=True, timeout=240
    )


def captions(film: Path) -> list[tuple[float, float, str]]:
    """The film's subtitle stream as ffmpeg reads it: begin, end, text."""
    words = [executable(), "-loglevel", "error", "-i", str(film), "-map", "0:s:0", "-f", "srt", "pipe:1"]
    said = subprocess.run(words, capture_output=True, check=True).stdout.decode()
    found = re.findall(r"(\S+) --> (\S+)\n(.*?)\n\n", said + "\n\n", re.DOTALL)
    return [(seconds(begin), seconds(end), text.strip("\u200b \n")) for begin, end, text in found]


def seconds(text: str) -> float:
    hours, minutes, rest = text.replace(",", ".").split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)


def heard(film: Path) -> list[tuple[float, float]]:
    """When someone speaks: spans of sound with less than 0.4 s of silence inside."""
    samples = np.abs(np.frombuffer(decode_samples(film, RATE), "<i2").astype(float))
    loud = np.flatnonzero(samples > 0.01 * samples.max()) / RATE
    gaps = np.flatnonzero(np.diff(loud) > 0.4)
    return list(zip(loud[[0, *(gaps + 1)]], loud[[*gaps, -1]], strict=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where both films are made, once."""
    made = tmp_path_factory.mktemp("films")
    for language, chapter in CHAPTERS.items():
        (made / f"{language}.txt").write_text(chapter, "utf-8")
        done = patra(made, "studio", "make", f"{language}.txt", "-o", f"{language}.mp4", "--no-ambience")
        assert done.returncode == 0, done.stderr
    return made


@pytest.mark.parametrize("language", ["en", "zh"])
def test_narration_subtitles_and_picture_agree_to_a_tenth_of_a_second(folder: Path, language: str) -> None:
    film = folder / f"{language}.mp4"
    found = probe(film)
    assert (found.streams, found.width, found.height) == (("Video", "Audio", "Subtitle"), 854, 480)
    streams = lengths(film)
    assert abs(streams["video"] - streams["audio"]) <= 100, streams
    shown = captions(film)
    assert all(text for _, _, text in shown)  # no caption is empty
    assert abs(streams["subtitle"] - 1000 * shown[-1][1]) <= 100
    assert "".join(text for _, _, text in shown).replace(" ", "") in "".join(CHAPTERS[language].split())
    assert all(one[1] <= next_[0] for one, next_ in pairwise(shown))
    speech = heard(film)
    assert len(speech) == len(shown) == 2
    for (begin, end, _), (first, last) in zip(shown, speech, strict=True):
        assert abs(begin - first) <= 0.1
        assert abs(end - last) <= 0.1


def test_runs_are_listed_shown_and_an_ended_one_is_not_cancelled(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)

    def said(*words: str, ends: int = 0) -> str:
        assert run(["studio", *words]) == ends
        shown = capsys.readouterr()
        return shown.err if ends else shown.out

    listed = json.loads(said("runs", "--json"))
    assert [(line["title"], line["stage"]) for line in listed] == [("纸船", "completed"), ("The Test", "completed")]
    run_id = listed[-1]["run_id"]
    shown = json.loads(said("show", run_id, "--json"))
    assert abs(shown["film_ms"] - probe(folder / "en.mp4").duration_ms) <= 100
    assert "artifact.published" in said("show", run_id, "--events")
    assert json.loads(said("show", run_id, "--events", "--json"))["events"][-1]["kind"] == "run.stage.changed"
    drawn = json.loads(said("storyboard", run_id, "-o", "board.html", "--json"))
    assert drawn == {"page": "board.html", "shots": len(json.loads(said("shots", run_id, "--json")))}
    assert json.loads(said("make", "en.txt", "-o", "draft.html", "--storyboard", "--json"))["page"] == "draft.html"
    assert (folder / "draft.html").is_file()
    assert "s_run_not_running" in said("cancel", run_id, ends=5)
    assert "s_run_unknown" in said("show", "run_nothing", ends=5)
    assert "goes on from composing" in said("resume", run_id, "--from", "composing", "-o", "again.mp4")
    assert (folder / "again.mp4").read_bytes() == (folder / "en.mp4").read_bytes()
    assert not list(folder.glob(".*.part"))
    assert run(["audit", "--json"]) == 0
    acts = [(entry["act"], entry["subject"]) for entry in json.loads(capsys.readouterr().out)]
    assert acts == [("studio.resume", run_id), *(("studio.submit", line["run_id"]) for line in listed)]


def test_the_commands_of_the_tutorial_make_the_film_of_its_chapter(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = TUTORIAL.read_text("utf-8")
    assert f"```text\n{CHAPTERS['en']}\n```" in page  # the fixture has made its shots: the same work is found again
    monkeypatch.chdir(folder)
    Path("chapter.txt").write_text(CHAPTERS["en"], "utf-8")
    commands = re.findall(r"^    patra (\S.*)$", page, re.MULTILINE)
    assert [run(command.split()) for command in commands] == [0, 0, 0]
    assert Path("film.mp4").read_bytes() == Path("again.mp4").read_bytes()


@pytest.mark.parametrize(
    ("chapter", "more", "code"),
    [
        ("…".encode(), (), "s_chapter_empty"),
        (b"", (), "s_chapter_empty"),
        (b"\x00\x01\xfe\xff rubbish \x9a", (), "s_chapter_not_text"),
        (b"It rained\x00 all day.", (), "s_chapter_not_text"),
        (b"It rained all day. " * 60_000, (), "s_chapter_too_long"),
        (b"It rained.", ("--language", "xx"), "s_language_unknown"),
        ("Мальчик пошёл домой.".encode(), (), "s_language_unknown"),
        ("Мальчик пошёл домой.".encode(), ("--language", "en"), "s_language_unknown"),
        (b"It rained.", ("-o", "nowhere/film.mp4"), "s_output_unwritable"),
        (b"It rained.", ("-o", "film.AVI"), "film.AVI: a film is written as MP4 (name it film.mp4)"),
        (b"It rained.", ("-o", "chapter.txt/film.mp4"), "s_output_unwritable"),
        (b"It rained.", ("--profile", "audio=nobody"), "s_profile_unknown"),
    ],
)
def test_what_cannot_become_a_film_is_refused_at_once_by_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chapter: bytes, more: tuple[str, ...], code: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chapter.txt").write_bytes(chapter)
    words = ["studio", "make", "chapter.txt", *([] if "-o" in more else ["-o", "film.mp4"]), *more]
    with redirect_stderr(StringIO()) as said:
        ended = run(words)
    assert (ended, code in said.getvalue()) == (5, True), said.getvalue()
    assert not (tmp_path / "film.mp4").exists()
