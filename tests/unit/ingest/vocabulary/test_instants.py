"""Instants as providers write them (ruling I7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.vocabulary.instants import (
    Precision,
    check_format,
    date_numbers,
    read_instant,
    time_zone,
    write_instant,
)
from patra.kernel.clock import format_instant, parse_instant
from patra.kernel.errors import Invalid


@pytest.mark.parametrize(
    ("value", "instant", "precision"),
    [
        ("2026-11-16T02:03:04Z", "2026-11-16T02:03:04Z", Precision.INSTANT),
        ("2026-11-16T02:03:04+02:00", "2026-11-16T00:03:04Z", Precision.INSTANT),
        ("2026-11-16 02:03", "2026-11-16T02:03:00Z", Precision.INSTANT),
        ("2019", "2019-01-01T00:00:00Z", Precision.YEAR),
        (2019, "2019-01-01T00:00:00Z", Precision.YEAR),
        ("2019-03", "2019-03-01T00:00:00Z", Precision.MONTH),
        ("2019/3/5", "2019-03-05T00:00:00Z", Precision.DAY),
        ("20190305", "2019-03-05T00:00:00Z", Precision.DAY),
        ([[2019]], "2019-01-01T00:00:00Z", Precision.YEAR),
        ({"date-parts": [[2019, 3, 5]]}, "2019-03-05T00:00:00Z", Precision.DAY),
        ({"year": {"value": "2012"}, "month": None, "day": None}, "2012-01-01T00:00:00Z", Precision.YEAR),
        ({"value": 1489500000000}, "2017-03-14T14:00:00Z", Precision.INSTANT),
        ("2013 Mar-Apr", "2013-03-01T00:00:00Z", Precision.MONTH),
        ("2013 Mar 5-12", "2013-03-05T00:00:00Z", Precision.DAY),
        ("Winter-Spring 2013", "2013-01-01T00:00:00Z", Precision.MONTH),
        ("Summer 2013", "2013-06-01T00:00:00Z", Precision.MONTH),
        (1700000000, "2023-11-14T22:13:20Z", Precision.INSTANT),
        (1700000000123, "2023-11-14T22:13:20.123000Z", Precision.INSTANT),
        ("2104", "2104-01-01T00:00:00Z", Precision.YEAR),
    ],
)
def test_a_date_means_the_earliest_instant_it_can(value, instant, precision):
    found = read_instant(value)
    assert found is not None
    assert (format_instant(found.at), found.precision) == (instant, precision)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "n.d.",
        [[None]],
        [],
        {},
        {"year": None},
        "2024-13-01",
        "2024-02-30",
        "0000",
        True,
        float("nan"),
        float("inf"),
        "x" * 1000,
        object(),
        1.8e305,
        -1.8e305,
        10**400,
    ],
)
def test_what_means_nothing_is_nothing(value):
    assert read_instant(value) is None


def test_a_declared_format_is_the_only_one_tried():
    assert read_instant("2024/01/02 03:04", ["yyyy/MM/dd HH:mm"]).at == parse_instant("2024-01-02T03:04:00Z")
    assert read_instant("2024-01-02", ["yyyy/MM/dd"]) is None
    assert read_instant("1700000000", ["EPOCH_S"]).at == 1_700_000_000_000_000
    assert read_instant("1700000000123", ["EPOCH_MS"]).at == 1_700_000_000_123_000


def test_instants_without_an_offset_are_in_the_zone_of_the_source():
    assert read_instant("2024-07-01 12:00", zone="America/New_York").at == parse_instant("2024-07-01T16:00:00Z")


@given(st.datetimes(min_value=__import__("datetime").datetime(1000, 1, 1)))
def test_what_is_written_is_read_back(moment):
    at = parse_instant(moment.isoformat(timespec="microseconds") + "Z")
    second = at // 1_000_000 * 1_000_000
    for fmt in ("yyyy-MM-dd'T'HH:mm:ss", "yyyyMMddHHmmss"):
        assert read_instant(write_instant(second, fmt), [fmt]).at == second
    assert read_instant(write_instant(at)).at == at


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text() | st.sampled_from(["year", "value", "date-parts"]), x),
        max_leaves=5,
    )
)
def test_any_json_is_an_instant_or_nothing(value):
    read_instant(value)


def test_formats_and_zones_that_mean_nothing_are_refused():
    with pytest.raises(Invalid):
        check_format("YYYY")
    with pytest.raises(Invalid):
        time_zone("Mars/Olympus")
    with pytest.raises(Invalid):
        time_zone("../../etc/passwd")


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        ({"date-parts": [[2019, 3, 5]]}, (2019, 3, 5)),
        ({"date-parts": [[2019]], "timestamp": 1}, (2019,)),
        ({"date-parts": [[2019, True]]}, None),
        ({"date-parts": [[2019, "3"]]}, None),
        ({"date-parts": [[None]]}, None),
        ({"date-parts": [[2019], [2020]]}, None),
        ({"date-parts": [2019]}, None),
        ({"date-parts": [[2019]], "date-time": "2020-01-01T00:00:00Z"}, None),
        ([[2019]], None),
        ("2019", None),
    ],
)
def test_the_numbers_of_a_date_are_those_of_parts_that_need_no_reading(
    value: object, numbers: tuple[int, ...] | None
) -> None:
    assert date_numbers(value) == numbers
