"""The shots of a film as parts of a bar as long as the film: each a link to the place where it begins."""

from collections.abc import Sequence

from markupsafe import Markup

from patra.web.console.markup.formats import span_text

MIN_LABELLED_SHARE = 0.03


def shot_bar(shots: Sequence[str], starts_ms: Sequence[int], length_ms: int, film: str) -> Markup:
    """`film` is the address of the film; a place in it is its fragment."""
    if not shots or len(shots) != len(starts_ms) or length_ms <= 0:
        return Markup("")
    ends = [*starts_ms[1:], length_ms]
    parts = Markup("").join(
        _part(number, shot, start, end, length_ms, film)
        for number, (shot, start, end) in enumerate(zip(shots, starts_ms, ends, strict=True), 1)
    )
    bar = Markup('<svg role="group" aria-label="Shots of the film">{}</svg>').format(parts)
    return Markup('<div class="shotbar" id="shotbar">{}</div>').format(bar)


def _part(number: int, shot: str, start: int, end: int, length: int, film: str) -> Markup:
    x, width = start / length, max(end - start, 0) / length
    text = (
        Markup('<text x="{:.3f}%" y="50%" dy="4">{}</text>').format(100 * (x + width / 2), number)
        if width >= MIN_LABELLED_SHARE
        else ""
    )
    return Markup(
        '<a href="{}#t={:.3f}" data-start="{}" data-shot="{}" aria-label="Shot {}, {} into the film">'
        '<rect x="{:.3f}%" width="{:.3f}%" y="0" height="100%"/>{}</a>'
    ).format(film, start / 1000, start, shot, number, span_text(start * 1000), 100 * x, 100 * width, text)
