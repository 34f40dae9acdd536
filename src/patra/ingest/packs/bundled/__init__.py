"""The source packs of the distribution, by name: as text, or read and ready to compile.

Packs are data. This module only finds them; `patra ingest pack check` and the registry treat them like any other file.
"""

from functools import cache
from importlib.resources import files

from patra.ingest.packs.compiler import LoadedPack, load_pack
from patra.ingest.packs.problems import errors, unknown_name
from patra.ingest.packs.schema import Pack
from patra.ingest.packs.yaml.yaml_document import read_document
from patra.kernel.errors import Invalid


@cache
def names() -> tuple[str, ...]:
    """The sources that come with the distribution."""
    found = (entry.name for entry in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml")))


def text(name: str) -> str:
    """The YAML of a pack. Raises Invalid where there is none of that name."""
    if name not in names():
        raise Invalid("pack_unknown", f"there is no pack {name!r}", advice=unknown_name(name, names()))
    return files(__name__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")


@cache
def pack(name: str) -> LoadedPack:
    """A pack, read. Those of the distribution have no errors."""
    return parse_pack(text(name), f"{name}.yaml")


def parse_pack(yaml: str, file: str) -> LoadedPack:
    """A pack from its text. Raises Invalid with the first thing that is wrong with it."""
    document = read_document(yaml, file, Pack)
    loaded = load_pack(document)
    if loaded is None:
        first = errors(document.problems)[0]
        raise Invalid("pack_invalid", str(first))
    return loaded
