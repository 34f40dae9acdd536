"""Rows that are chosen, and the acts that are done to all of them with one confirmation.

The boxes stand in the rows and belong to one form by its id: without script, too, the form asks for the confirmation.
"""

from collections.abc import Iterable, Mapping

from markupsafe import Markup


def choice_bar(name: str, fields: Mapping[str, str], acts: Iterable[tuple[str, str]], back: str) -> Markup:
    """The form of a list's choice: what all of its rows share, and a button for each act by its confirmation."""
    hidden = Markup("").join(
        Markup('<input type="hidden" name="{}" value="{}">').format(field, value)
        for field, value in {**fields, "back": back}.items()
        if value
    )
    buttons = Markup("").join(
        Markup('<button class="btn small" type="submit" formaction="/console/confirm/{}">{}</button>').format(
            act, label
        )
        for act, label in acts
    )
    return Markup(
        '<form class="choose" id="{}" method="get" data-choose aria-label="What to do with the rows that are chosen">{}'
        '<label><input type="checkbox" data-choose-all> All<span> on this page</span></label>'
        '<span class="dim" data-chosen aria-live="polite">Choose rows</span>{}</form>'
    ).format(f"choose-{name}", hidden, buttons)


def choice_box(name: str, field: str, value: str, label: str) -> Markup:
    """The box of one row."""
    return Markup(
        '<label class="box-of-row"><input type="checkbox" form="choose-{}" name="{}" value="{}"'
        ' aria-label="Choose {}"></label>'
    ).format(name, field, value, label)
