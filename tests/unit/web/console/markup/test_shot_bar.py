"""The bar of a film's shots."""

import re

from patra.web.console.markup.shot_bar import shot_bar


def test_each_shot_is_as_long_as_it_plays_and_leads_to_its_beginning() -> None:
    made = shot_bar(["a", "b"], [0, 2500], 10_000, "/console/studio/film/run_1")
    assert re.findall(r'<rect x="([0-9.]+)%" width="([0-9.]+)%"', made) == [("0.000", "25.000"), ("25.000", "75.000")]
    assert 'href="/console/studio/film/run_1#t=2.500" data-start="2500" data-shot="b"' in made
    assert 'aria-label="Shot 2, 2.5 s into the film"' in made


def test_a_film_without_places_has_no_bar() -> None:
    assert shot_bar(["a", "b"], [0], 10_000, "/") == shot_bar([], [], 0, "/") == ""
