import itertools

import numpy as np
import pytest

from patra.studio.paint.camera import Camera, view_at
from patra.studio.paint.frames import ShotFrames, render
from patra.studio.paint.inserts import _THINGS
from patra.studio.paint.lettering import title_card
from patra.studio.paint.narrator import portrait
from patra.studio.paint.places import _PLACES
from patra.studio.paint.scene import ROOM, paint
from patra.studio.script.lexicon import INSIDE, MOTIFS, PLACES
from patra.studio.script.shots import INSERTS, MOVES, Figure, Picture
from patra.studio.voice.visemes import SHAPES, Mouth

W, H = 96, 54


def picture(**fields):
    return Picture(**({"place": "sea", "time": "dusk", "weather": "clear", "mood": "calm", "seed": 3} | fields))


def pixels(layers):
    return np.asarray(layers.back, np.float32)


def test_the_painter_knows_every_place_and_insert_of_the_lexicon():
    assert set(PLACES) <= set(_PLACES) | INSIDE
    assert set(INSERTS) <= set(_THINGS)


@pytest.mark.parametrize("place", sorted(PLACES))
def test_no_place_is_a_blank_card(place):
    for time, weather in (("day", "clear"), ("night", "rain"), ("dawn", "snow"), ("dusk", "fog")):
        layers = paint(
            picture(place=place, time=time, weather=weather, figures=(Figure(kind="woman", name="Mara"),)), W, H, 1.0
        )
        seen = pixels(layers)
        assert layers.back.size == (round(W * ROOM), round(H * ROOM))
        assert seen.std() > 9, (place, time)
        assert len(np.unique(seen.astype(np.uint8).reshape(-1, 3), axis=0)) > 400


@pytest.mark.parametrize("motif", sorted(MOTIFS))
def test_every_motif_can_be_painted(motif):
    for place, framing in (("river", "wide"), ("room", "wide"), ("street", "medium")):
        paint(
            picture(place=place, framing=framing, motifs=(motif,), figures=(Figure(kind="girl", name="A"),)), W, H, 1.0
        )


@pytest.mark.parametrize("subject", INSERTS)
def test_every_insert_can_be_painted(subject):
    assert pixels(paint(picture(place="room", framing="insert", subject=subject), W, H, 1.0)).std() > 9


def test_the_same_picture_gives_the_same_pixels():
    one, other = (paint(picture(place="village", motifs=("tree",)), W, H, 1.2) for _ in range(2))
    assert np.array_equal(pixels(one), pixels(other))


def test_times_of_day_look_different():
    looks = [
        pixels(paint(picture(time=time), W, H, 1.0)).mean(axis=(0, 1)) for time in ("dawn", "day", "dusk", "night")
    ]
    for one, other in itertools.combinations(looks, 2):
        assert np.abs(one - other).max() > 15


def shot(**fields):
    given = {
        "picture": picture(), "before": None, "cut": "dip", "leaves": "cut", "title": "", "language": "en",
        "frames": 12, "fps": 10, "width": W, "height": H, "smooth": 1.0,
    }  # fmt: skip
    return ShotFrames(**(given | fields))


@pytest.mark.parametrize("camera", MOVES)
def test_the_camera_moves_and_stays_within_the_painting(camera):
    for t in (0.0, 0.5, 1.0):
        view = view_at(camera, t)
        assert 1.0 <= view.size <= ROOM
        assert -1 <= view.x <= 1
        assert -1 <= view.y <= 1
    frames = list(render(shot(picture=picture(camera=camera), cut="cut"), None))
    assert len(frames) == 12
    assert all(len(frame) == W * H * 3 for frame in frames)
    assert frames[0] != frames[-1]


@pytest.mark.parametrize("move", ["pan_left", "pan_right", "drift_up", "drift_down"])
def test_a_shifted_painting_is_where_a_scaled_one_would_be(move, monkeypatch):
    from patra.studio.paint import camera as cameras

    layers = paint(picture(place="river", framing="medium", figures=(Figure(kind="woman", name="Mara"),)), W, H, 1.0)
    assert layers.front is not None
    shifting = Camera(layers, move, W, H)
    still = {t: view_at(move, t) for t in (0.0, 0.3, 1.0)}
    # the same places, but with a size that changes: the camera scales every frame
    monkeypatch.setattr(cameras, "view_at", lambda _, t: still.get(t) or cameras.View(1.0, 0.0, 0.0))
    monkeypatch.setitem(still, 1.0, cameras.View(still[1.0].size + 1e-9, still[1.0].x, still[1.0].y))
    scaling = Camera(layers, move, W, H)
    for t in still:
        one, other = (np.asarray(c.at(t), np.float32) for c in (shifting, scaling))
        here = np.abs(one - other).mean()
        beside = np.abs(one[:, 3:] - other[:, :-3]).mean(), np.abs(one[3:] - other[:-3]).mean()
        assert here < 6
        assert here < min(beside)


def test_the_front_passes_only_where_it_is():
    layers = paint(picture(place="room"), W, H, 1.0)
    assert layers.front is not None
    assert layers.front.width < W / 4  # a doorpost, not a whole layer
    assert all(Camera(layers, move, W, H).at(0.5).size == (W, H) for move in MOVES)


def test_a_film_opens_from_the_dark_and_ends_in_it():
    frames = list(render(shot(cut="open", leaves="end", frames=40), None))
    light = [np.frombuffer(frame, np.uint8).mean() for frame in frames]
    assert light[0] == light[-1] == 0
    assert max(light) > 40


def test_a_blend_begins_with_the_picture_before():
    before = picture(time="night", place="mountain")
    blended = list(render(shot(before=before, cut="blend"), None))
    alone = list(render(shot(picture=before, cut="cut", frames=2), None))
    first = np.frombuffer(blended[0], np.uint8).astype(int)
    last = np.frombuffer(alone[-1], np.uint8).astype(int)
    assert np.abs(first - last).mean() < 12


def test_the_title_is_read_before_the_first_word():
    plain, titled = (list(render(shot(title=title, frames=30, cut="cut"), None)) for title in ("", "The Light 光"))
    assert plain[0] == titled[0]
    assert plain[12] != titled[12]
    assert plain[29] == titled[29]


def test_the_narrators_mouth_changes_with_the_shape():
    faces = {portrait(60, shape, False).tobytes() for shape in SHAPES}
    assert len(faces) >= len(SHAPES) - 1
    quiet = Mouth(fps=10, shapes=(0,) * 12, blinks=())
    speaking = Mouth(fps=10, shapes=(SHAPES.index("open"),) * 12, blinks=())
    still = shot(still=True, cut="cut")
    assert next(iter(render(still, quiet))) != next(iter(render(still, speaking)))


@pytest.mark.parametrize(
    "title",
    [
        "The Light", "第一章 纸船", "第二十七章 " + "很远很远的海上" * 6, "A" * 90, "One title of very many words " * 12,
    ],
)  # fmt: skip
def test_no_title_is_cut_by_the_edge_of_the_picture(title):
    card = np.asarray(title_card(title, "en", 320, 180))
    letters = (card[:, :, 3] > 200) & (card[:, :, 0] > 200)
    rows, columns = np.flatnonzero(letters.any(axis=1)), np.flatnonzero(letters.any(axis=0))
    assert len(rows)
    assert 0 < rows[0] <= rows[-1] < 0.75 * 180  # clear of the narrator
    assert 8 < columns[0] <= columns[-1] < 320 - 8
