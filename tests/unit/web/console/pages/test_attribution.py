"""The days of a settlement."""

from patra.web.console.pages.attribution import every_day


def test_a_settlement_by_day_has_every_day_of_a_short_span() -> None:
    line = {"app_id": "", "day": "2026-11-02", "placement": "", "impressions": 3, "clicks": 1}
    found = every_day([line], "2026-11-01T00:00:00Z", "2026-11-04T00:00:00Z")
    assert [(one["day"], one["impressions"]) for one in found] == [
        ("2026-11-01", 0),
        ("2026-11-02", 3),
        ("2026-11-03", 0),
    ]
    assert every_day([line], "2020-01-01T00:00:00Z", "2026-11-04T00:00:00Z") == [line]
    assert every_day([line], "yesterday", "2026-11-04T00:00:00Z") == [line]
