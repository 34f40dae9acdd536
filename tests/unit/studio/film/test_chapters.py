"""A film has a chapter where the place or the matter changes; short ones are joined, and the file names them."""

import numpy as np

from patra.studio.film.chapters import ChapterMark, chapters_of, ffmetadata, title_of
from patra.studio.film.ffmpeg import encode_clip, lengths, probe, run
from patra.studio.film.quality import Quality
from patra.studio.script.plan import make_plan

STORY = (
    "The sea was calm at dusk, and the long waves came in one after another without a sound.\n\n"
    "In the kitchen the old woman lit the stove and set a kettle on it for the evening tea.\n\n"
    "She went down to the station and waited for the train that would bring her brother home."
)
SMALL = Quality(name="draft", width=64, height=36, fps=10, preset="ultrafast", crf=30, smooth=1.0, audio_kbit=64)


def test_a_new_place_is_a_new_chapter_named_after_it():
    shots = make_plan(STORY).shots
    marks = chapters_of(shots, [0, 9000, 20_000], 30_000, "en")
    assert [(m.at, m.end) for m in marks] == [(0, 9000), (9000, 20_000), (20_000, 30_000)]
    assert [m.title for m in marks] == ["Sea, dusk", "Kitchen, dusk", "Station, dusk"]


def test_a_short_chapter_belongs_to_the_one_before_it_and_one_alone_is_none():
    shots = make_plan(STORY).shots
    assert [m.at for m in chapters_of(shots, [0, 9000, 12_000], 30_000, "en")] == [0, 9000]
    assert [m.at for m in chapters_of(shots, [0, 9000, 20_000], 21_000, "en")] == [0, 9000]
    assert chapters_of(shots, [0, 2000, 4000], 6000, "en") == []
    assert chapters_of(shots[:1], [0], 60_000, "en") == []


def test_what_explains_has_a_chapter_a_paragraph_named_by_its_first_words():
    text = (
        "A battery is a device that stores energy in chemicals and gives it back as electricity.\n\n"
        "A cell has three parts: an anode, a cathode and an electrolyte."
    )
    shots = make_plan(text).shots
    marks = chapters_of(shots, [0, 9000], 20_000, "en")
    assert [m.title for m in marks] == [
        "A battery is a device that stores energy…",
        "A cell has three parts: an anode, a…",
    ]


def test_chinese_chapters_have_chinese_names():
    shots = make_plan("清晨，江面上有雾，渡船慢慢地开过来了。\n\n奶奶在厨房里煮粥，炉子上冒着白气。").shots
    assert [title_of(shot, "zh") for shot in shots] == ["河边，黎明", "厨房，黎明"]


def test_the_file_names_its_chapters_and_they_are_no_stream_of_its_length(tmp_path):
    marks = [ChapterMark(at=0, end=1000, title="Sea; = #1\\"), ChapterMark(at=1000, end=2000, title="厨房，夜")]
    encode_clip((np.zeros((36, 64, 3), np.uint8).tobytes() for _ in range(20)), SMALL, tmp_path / "a.mp4")
    (tmp_path / "c.txt").write_text(ffmetadata(marks), "utf-8")
    chapters = ["-f", "ffmetadata", "-i", str(tmp_path / "c.txt"), "-map_chapters", "1", "-map", "0:v:0"]
    run(["-i", str(tmp_path / "a.mp4"), *chapters, "-c", "copy", str(tmp_path / "b.mp4")])
    assert probe(tmp_path / "b.mp4").chapters == ((0, "Sea; = #1＼"), (1000, "厨房，夜"))
    assert lengths(tmp_path / "b.mp4").keys() == {"video"}
