"""Elements are escaped as `Markup.format` escapes them."""

from markupsafe import Markup

from patra.web.console.markup.element import element

HOSTILE = ("<script>", "a&b", '" onload="x', "'", "", 8, 1.5, Markup("<b>ours</b>"), "{0}", "%s")


def test_values_are_escaped_and_markup_is_not_escaped_again():
    template = '<a href="{}">{}</a>' + "{}" * (len(HOSTILE) - 2)
    made = element(template, *HOSTILE)
    assert made == Markup(template).format(*HOSTILE)
    assert "<script>" not in made
    assert "<b>ours</b>" in made


def test_an_element_is_markup_that_no_template_escapes_again():
    assert Markup("<p>{}</p>").format(element("<i>{}</i>", "<")) == "<p><i>&lt;</i></p>"
