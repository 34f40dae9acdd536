"""Whether rows of a list can be chosen together: an act on many is done to one group, endpoint or channel at a time."""

from collections.abc import Sequence
from typing import Any, TypeVar

from patra.web.console.acts import ACTS
from patra.web.console.view import View

T = TypeVar("T")


def choice(view: View, places: Sequence[T], *acts: str) -> dict[str, Any]:
    """Where rows of the page can be chosen: in the only place, or after one of several is taken; nothing for those who
    may do none of the acts.
    """
    may = any(view.may(ACTS[name].method, ACTS[name].template) for name in acts)
    return {
        "can_choose": may and len(places) == 1,
        "choose_place": places[0] if may and len(places) == 1 else None,
        "choose_among": list(places) if may and len(places) > 1 else [],
    }
