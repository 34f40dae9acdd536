"""Writes the table of given names from Faker's lists: `python -m tests.support.given_names`."""

import importlib
import pkgutil
from collections import Counter, defaultdict
from importlib.metadata import distribution
from importlib.resources import files

from patra.studio.script.cast.given_names import without_accents

TABLE = files("patra.studio.script.tables").joinpath("given_names.txt")


def votes_of_faker() -> dict[str, int]:
    """For each name in how many more lists of women's names it is than in lists of men's; not those in as many of both."""
    import faker.providers.person as people

    votes: Counter[str] = Counter()
    for found in pkgutil.iter_modules(people.__path__):
        provider = importlib.import_module(f"{people.__name__}.{found.name}").Provider
        for names, vote in (("first_names_female", 1), ("first_names_male", -1)):
            for name in getattr(provider, names, None) or ():
                if name.isalpha() and name < "ɐ":
                    votes[without_accents(name).lower()] += vote
    return {name: max(-3, min(3, vote)) for name, vote in votes.items() if vote}


def licence_of_faker() -> str:
    found = distribution("Faker")
    path = next(file for file in found.files or () if file.name == "LICENSE.txt")
    return str(found.locate_file(path).read_text("utf-8"))  # type: ignore[attr-defined]


def table() -> str:
    rows: defaultdict[int, list[str]] = defaultdict(list)
    for name, vote in sorted(votes_of_faker().items()):
        rows[vote].append(name)
    head = "Given names of women (more than 0) and men, from the lists of Faker (joke2k), under its licence:\n\n"
    notes = "".join(f"# {line}".rstrip() + "\n" for line in (head + licence_of_faker()).splitlines())
    return notes + "".join(f"{vote} {' '.join(rows[vote])}\n" for vote in sorted(rows))


if __name__ == "__main__":
    open(str(TABLE), "w", encoding="utf-8").write(table())  # noqa: SIM115, PTH123
