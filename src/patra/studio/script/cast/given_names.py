"""Says whether a given name is a woman's or a man's, by Faker's lists: 30,000 names of 80 languages (C§2.3)."""

import importlib
import pkgutil
import unicodedata
from collections import Counter
from functools import lru_cache

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
    import faker.providers.person as people  # noqa: PLC0415  half a second, for chapters with names alone

    votes: Counter[str] = Counter()
    for found in pkgutil.iter_modules(people.__path__):
        provider = importlib.import_module(f"{people.__name__}.{found.name}").Provider
        for names, vote in (("first_names_female", 1), ("first_names_male", -1)):
            for name in getattr(provider, names, None) or ():
                if name.isalpha() and name < "ɐ":
                    votes[without_accents(name).lower()] += vote
    return dict(votes)
