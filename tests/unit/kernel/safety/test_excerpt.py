"""An excerpt of a body is redacted as if all of the body were, whether or not all of it was looked at."""

import pytest

from patra.kernel.safety.excerpt import redacted_excerpt

CARD = '{"title": "A study", "year": 2019, "link": "https://example.org/articles/10.5000/x"},'


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ('"api_key":"', 'S3cr3tValue","next":1}'),
        ('"password": ["one",', '"S3cr3tValue"]}'),
        ("https://me:", 'S3cr3tValue@host.example/x","y"'),
        ("someone.S3cr3tValue", '@mail.example","y"'),
        ("+49 171 1", '2345678","y"'),
        ("-----BEGIN RSA PRIVATE KEY-----\\n", 'MIIE","y"'),
        ("ghp_0123456789ab", 'cdefghijklmnop","y"'),
        ("Authorization: Bearer ", 'S3cr3tValue","y"'),
        ("cookie =>", " S3cr3tValue"),
    ],
)
def test_a_secret_that_begins_in_the_excerpt_is_masked_wherever_the_excerpt_ends(before: str, behind: str) -> None:
    text = f'{"x " * 50}"{before}{behind} {CARD * 30}'
    start = 101
    for size in range(start, start + len(before) + 1):
        shown = redacted_excerpt(text.encode(), size)
        assert shown[:start] == text[:start]
        assert not any(piece in shown for piece in ("S3cr3t", "171 1", "MII", "ghp_", "someone"))


def test_an_excerpt_of_a_sound_text_is_its_beginning() -> None:
    text = CARD * 60
    assert redacted_excerpt(text.encode(), 1024) == text[:1024]
    assert redacted_excerpt(text.encode(), 10_000) == text
