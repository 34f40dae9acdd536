import itertools

import numpy as np
import pytest

from patra.studio.paint.camera import Camera, view_at
from patra.studio.paint.figures import Look
from patra.studio.paint.frames import ShotFrames, render
from patra.studio.paint.inserts import _THINGS
from patra.studio.paint.lettering import title_card
from patra.studio.paint.narrator import portrait
from patra.studio.paint.scene import ROOM, paint
from patra.studio.paint.scenery.places import _PLACES
from patra.studio.script.facts import Card
from patra.studio.script.lexicon import INSIDE, MOTIFS, PLACES
from patra.studio.script.shots import INSERTS, MOVES, Figure, Picture
from patra.studio.voice.espeak import Mark
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


CARDS = [
    Card(kind="definition", title="battery", items=("a device that stores energy",)),
    Card(kind="list", items=("flour", "two eggs", "一点盐")),
    Card(kind="number", title="71 percent", items=("of the earth",), values=(71.0,)),
    Card(kind="bars", items=("snail|1 m", "horse|800 m"), values=(1.0, 800.0)),
    Card(kind="date", title="1894", items=("The bridge was opened.",)),
    Card(kind="things", title="A kettle."),
    Card(kind="words", title="Nothing of this can be drawn."),
]


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.kind)
def test_a_card_shows_something_of_its_own(card):
    drawn = picture(place="", framing="card", card=card, pictograms=("kettle",), camera="push_in")
    empty = picture(place="", framing="card", card=Card(kind="words"), camera="push_in")
    assert np.abs(pixels(paint(drawn, W, H, 1.0)) - pixels(paint(empty, W, H, 1.0))).max() > 60


def test_people_who_are_nowhere_stand_before_no_place():
    someone = (Figure(kind="woman", name="Mara", number=0),)
    assert paint(picture(place="", framing="medium", figures=someone), W, H, 1.0).front is not None


def test_no_moon_is_painted_where_there_is_none():
    dark, lit = (pixels(paint(picture(time="night", absent=absent), W, H, 1.0)) for absent in (("moon",), ()))
    assert np.abs(lit - dark).max() > 60


def test_a_place_that_is_seen_again_is_neither_the_same_nor_its_mirror_image():
    one, left, right = (pixels(paint(picture(place="village", view=view), W, H, 1.0)) for view in (0, 1, 2))
    for other in (left, right):
        assert np.abs(one - other).mean() > 5
        assert np.abs(one[:, ::-1] - other).mean() > 5


def test_no_two_people_of_a_chapter_are_dressed_alike():
    coats = {Look(Figure(kind="woman", name=name, number=n)).coat for n, name in enumerate("ABCDEFGH")}
    assert len(coats) == 8


@pytest.mark.parametrize(("width", "height"), [(54, 96), (54, 54)])
def test_upright_and_square_frames_are_painted_whole(width, height):
    for framing, place in (("card", ""), ("wide", "village"), ("medium", "river")):
        drawn = picture(place=place, framing=framing, card=CARDS[1], figures=(Figure(kind="man", name="A", number=0),))
        frames = list(render(shot(picture=drawn, width=width, height=height, cut="cut", frames=2), None))
        seen = np.frombuffer(frames[0], np.uint8).reshape(height, width, 3)
        assert seen.std() > 5
        assert seen[height // 2].std() > 1


def test_the_mouth_of_who_speaks_moves_and_the_narrators_does_not():
    people = (Figure(kind="woman", name="Anna", number=0), Figure(kind="man", name="Tom", number=1))
    talk = picture(place="street", time="day", framing="medium", figures=people, camera="pan_right")
    open_, rest = (Mouth(fps=10, shapes=(SHAPES.index(name),) * 12, blinks=()) for name in ("open", "rest"))

    def middle(mouth, *spoken):
        given = shot(picture=talk, cut="cut", width=320, height=180, spoken=spoken)
        return np.frombuffer(list(render(given, mouth))[6], np.uint8).reshape(180, 320, 3).astype(int)

    def moved(*spoken):
        return np.abs(middle(open_, *spoken) - middle(rest, *spoken)).max(axis=2) > 20

    anna, tom, narrator = moved(Mark(0, 1200, "Anna")), moved(Mark(0, 1200, "Tom")), moved()
    assert anna.any()
    assert np.flatnonzero(anna.any(axis=0)).max() < np.flatnonzero(tom.any(axis=0)).min()
    assert narrator.any()
    assert not (anna & narrator).any()  # the narrator is silent while Anna speaks


def test_a_pictogram_is_whole_whatever_part_of_a_place_is_seen():
    def plate(view):
        with_it, without = (pixels(paint(picture(view=view, pictograms=p), W, H, 1.0)) for p in (("kettle",), ()))
        changed = np.argwhere(np.abs(with_it - without).sum(axis=2) > 60)
        return changed.max(axis=0) - changed.min(axis=0)

    for view in (1, 2):  # its shadow is seen more or less, as the ground is dark or bright
        assert np.abs(plate(view) - plate(0)).max() <= 2


def test_a_crowd_by_the_water_stands_on_its_bank_and_no_dog_brings_people_along():
    rows = np.argwhere(
        np.abs(
            pixels(paint(picture(place="river", crowd=True), W, H, 1.0))
            - pixels(paint(picture(place="river"), W, H, 1.0))
        ).sum(axis=2)
        > 30
    )[:, 0]
    assert rows.min() > 0.6 * H * ROOM
    alone = pixels(paint(picture(place="field", motifs=("dog",)), W, H, 1.0))
    assert (np.abs(alone - pixels(paint(picture(place="field"), W, H, 1.0))).sum(axis=2) > 30).mean() < 0.02


def test_a_card_clears_after_the_title_has_gone():
    card = picture(framing="card", card=Card(kind="words", title="A storm."))
    plain, titled = (
        [
            np.frombuffer(one, np.uint8).astype(int)
            for one in render(shot(picture=card, title=t, frames=40, cut="cut"), None)
        ]
        for t in ("", "The Light")
    )
    assert np.abs(plain[25] - titled[25]).mean() > 20  # 2.5 s: the title goes, its card is still out of focus
    assert np.array_equal(plain[35], titled[35])


def test_two_cards_are_never_seen_over_each_other():
    one, other = (picture(framing="card", card=Card(kind="words", title=words)) for words in ("A storm.", "A calm."))
    alone, after = (
        list(render(shot(picture=other, before=before, cut="blend", frames=6), None)) for before in (None, one)
    )
    assert alone == after


@pytest.mark.parametrize("seed", range(4))
def test_no_sky_ends_above_the_first_dune(seed):
    seen = pixels(paint(picture(place="desert", seed=seed), W, H, 1.0))
    assert seen.max(axis=2).min() > 30


@pytest.mark.parametrize("count", [4, 6])
def test_people_who_are_counted_stand_apart(count: int) -> None:
    crowd, nobody = (
        pixels(paint(picture(place="field", crowd=many, crowd_count=count, crowd_kinds=("man",)), 480, 270, 1.0))
        for many in (True, False)
    )
    heads = (np.abs(crowd - nobody).sum(axis=2) > 60)[: int(0.76 * 270 * ROOM)].any(axis=0)
    groups = [key for key, _ in itertools.groupby(heads) if key]
    assert len(groups) == count
