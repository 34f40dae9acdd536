import pytest

from patra.bus.catalogue.versions import Version, parse_range, parse_version


@pytest.mark.parametrize("text", ["1", "1.", ".1", "01.0", "1.0.0", "v1.0", "1.0 ", "", "1.-1", "1.0\n"])
def test_an_event_version_is_major_and_minor(text):
    assert parse_version(text) is None


def test_versions_compare_by_number_not_by_text():
    assert parse_version("1.10") > parse_version("1.9")
    assert str(parse_version("2.13")) == "2.13"


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        (">=1,<2", ["1.0", "1.9"], ["0.9", "2.0"]),
        ("1", ["1.0", "1.7"], ["2.0"]),
        ("==1.2", ["1.2"], ["1.1", "1.3"]),
        (">=1.1,<2", ["1.1"], ["1.0"]),
        ("<=1", ["1.9", "0.1"], ["2.0"]),
        (">1", ["2.0"], ["1.9"]),
        (">1.2", ["1.3", "2.0"], ["1.2"]),
        (" >=1 , <3 ", ["2.5"], ["3.0"]),
    ],
)
def test_a_range_takes_what_all_its_bounds_take(text, inside, outside):
    accepted = parse_range(text)
    assert all(parse_version(v) in accepted for v in inside)
    assert not any(parse_version(v) in accepted for v in outside)


@pytest.mark.parametrize("text", ["", "one", ">=", ">=1;<2", "~1", "1.2.3", ">=1,"])
def test_what_is_no_range_is_refused(text):
    assert parse_range(text) is None


def test_a_range_names_the_majors_it_can_meet():
    assert parse_range(">=1,<2").majors({1, 2, 3}) == {1}
    assert parse_range(">=1.5").majors({1, 2}) == {1, 2}
    assert parse_range(">1.5,<2").majors({1, 2}) == {1}
    assert parse_range("==3").majors({1, 2}) == set()
    assert Version(1, 0) in parse_range(">=1")
