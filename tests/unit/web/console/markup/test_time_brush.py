"""A drawing from which a span of time is taken: what a script and a reader of the screen find there."""

from markupsafe import Markup

from patra.kernel.clock import SECOND
from patra.web.console.markup.time_brush import time_brush


def test_its_ends_are_instants_and_its_address_is_escaped() -> None:
    made = time_brush(Markup("<svg/>"), 0, 60 * SECOND, 12, '/console/bus?a="&b=1', "the <events>")
    assert 'data-begin="1970-01-01T00:00:00Z" data-end="1970-01-01T00:01:00Z" data-parts="12"' in made
    assert 'data-href="/console/bus?a=&#34;&amp;b=1"' in made
    assert 'role="slider" tabindex="0"' in made
    assert 'aria-valuemax="11"' in made
    assert "the &lt;events&gt;" in made
    assert "style=" not in made
