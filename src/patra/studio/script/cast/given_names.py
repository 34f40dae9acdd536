"""Says whether a given name is a woman's or a man's, by a table of Faker's lists: 19,000 names of 80 languages (C§2.3).

The table is written from Faker by `tests/support/given_names`: Faker itself takes half a second to load.
"""

import unicodedata
from functools import lru_cache
from importlib.resources import files

from patra.studio.script.cast.roles import MEN, WOMEN


def given_name_votes(name: str) -> int:
    """More than nothing for a woman's name, less for a man's, nothing for one that is unknown or of both."""
    plain = without_accents(name)
    if plain in WOMEN or plain in MEN:
        return 9 if plain in WOMEN else -9
    return max(-9, min(9, 3 * _votes().get(plain.lower(), 0)))


def without_accents(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


@lru_cache(maxsize=1)
def _votes() -> dict[str, int]:
    lines = files("patra.studio.script.tables").joinpath("given_names.txt").read_text("utf-8").splitlines()
    rows = (line.split() for line in lines if not line.startswith("#"))
    return {name: int(vote) for vote, *names in rows for name in names}
