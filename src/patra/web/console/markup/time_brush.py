"""A drawing on an axis of time from which a span is taken, by dragging or with the keyboard; the list then shows it."""

from markupsafe import Markup

from patra.kernel.clock import format_instant


def time_brush(drawing: Markup, begin: int, end: int, parts: int, href: str, what: str) -> Markup:
    """`href` is the list without a span; the instants of its ends are set there. A span begins and ends with a part."""
    return Markup(
        '<div class="brush" role="slider" tabindex="0" data-brush data-begin="{begin}" data-end="{end}"'
        ' data-parts="{parts}" data-href="{href}" aria-label="Span of time of {what}: drag, or move with the arrow'
        ' keys, take more with Shift, Enter shows it" aria-valuemin="0" aria-valuemax="{last}" aria-valuenow="0"'
        ' aria-valuetext="no span is taken">{drawing}<svg class="brush-over" aria-hidden="true"><rect x="0" y="0"'
        ' width="0" height="100%"/></svg><span class="brush-text" hidden></span></div>'
    ).format(
        begin=format_instant(begin),
        end=format_instant(end),
        parts=parts,
        last=parts - 1,
        href=href,
        what=what,
        drawing=drawing,
    )
