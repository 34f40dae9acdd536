"""One pack for each pagination kind, and a way to break them line by line."""

from pathlib import Path

from patra.ingest.packs.compiler import LoadedPack, check_pack, load_pack
from patra.ingest.packs.problems import Problem
from patra.ingest.packs.schema import Pack
from patra.ingest.packs.yaml.yaml_document import Document, read_document

HERE = Path(__file__).parent
KINDS = ("offset", "page", "token", "url", "time", "twophase", "oai")


def text_of(name: str) -> str:
    return (HERE / f"{name}.yaml").read_text("utf-8")


def document_of(text: str, file: str = "pack.yaml") -> Document:
    return read_document(text, file, Pack)


def loaded(name: str) -> LoadedPack:
    return loaded_text(text_of(name), f"{name}.yaml")


def loaded_text(text: str, file: str = "pack.yaml") -> LoadedPack:
    document = document_of(text, file)
    pack = load_pack(document)
    assert pack is not None, [str(problem) for problem in document.problems]
    return pack


def problems_of(text: str) -> list[Problem]:
    """Everything that `pack check` would say."""
    document = document_of(text)
    pack = load_pack(document)
    return [*document.problems] if pack is None else check_pack(pack)


def changed(name: str, *replacements: tuple[str, str]) -> str:
    """A pack with some of its text replaced; each replacement must match."""
    text = text_of(name)
    for old, new in replacements:
        assert old in text, f"{old!r} is not in {name}.yaml"
        text = text.replace(old, new, 1)
    return text


def line_of(text: str, part: str) -> int:
    """The line (from 1) on which a part of the text first stands."""
    return text[: text.index(part)].count("\n") + 1
