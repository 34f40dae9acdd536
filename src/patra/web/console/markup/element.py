"""One element of markup with its values escaped, for a third of what `Markup.format` costs: pages have thousands."""

from markupsafe import Markup, escape


def element(template: str, *values: object) -> Markup:
    """The template, which is ours, with every value escaped that is no markup already; no format specifications."""
    return Markup(template.format(*map(escape, values)))  # noqa: S704  every value is escaped
