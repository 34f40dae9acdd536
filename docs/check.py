# ruff: noqa: INP001, T201  a script of the documentation
"""Checks README, CONTRIBUTING, SECURITY, CHANGELOG, the pages and the texts of the program: local links lead
somewhere, tables are even, no words of our own dialect, no references to documents that are not here.

The texts of the program are its strings, docstrings, comments, templates, packs and SQL, but for migrations and
contracts, which never change. Generated pages are checked where their texts come from.

python docs/check.py      no network; exit code 1 and a line for each finding
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("deploy/**/*.md"),
    *ROOT.glob("examples/*.md"),
    *ROOT.glob("clients/*/*.md"),
]
LINK = re.compile(r"(?:(?<!\\)\]\(<?|\bsrc(?:set)?=\")([^()\s>\"]+(?:\([^()]*\)[^()\s>]*)?)(?:>?\)|\")")
# Pattern: what to write instead. A space stands for any white space, a line break too; where a group takes part, the
# phrase is allowed.
DIALECT = {
    r"lesser way": "fallback",
    r"bites?": "batch, batches",
    r"told apart by": "distinguished by its result",
    r"go(?:es)? in;": "a plain sentence",
    r"comes out\.": "a plain sentence",
    r"whoever": "name the process, caller or person",
    r"somebody": "name the process, caller or person",
    r"strangers?": "untrusted, unknown or of others",
    r"work(?:s|ed|ing)?(?: the lines?)? off": "handle",
    r"in hand": "running, begun or current",
    r"came of": "the result of",
    r"what is due": "due events, tasks or messages",
    r"anew": "again",
    r"all is well": "nothing failed",
    r"is not well": "does not work",
    r"told( apart| from)?": "shown, reported, sent or given",
    r"tells? (?:of|no|none|nobody|nothing)": "show, report, send or give",
    r"ways? of telling": "notification channel",
    r"speaks? of": "concern, state or mention",
    r"past its inbox": "a plain sentence",
    r"a look at": "a view of, or a preview",
    r"fates?": "result",
    r"mend(?:s|ed|ing)?": "fix",
}
USER_DIALECT = {r"Module F": "attribution"}  # the specification itself has this name
BUS_DIALECT = {
    r"(dead[ -]|lower-case )?letters?( and digits)?": "dead letter"
}  # elsewhere a letter is one of the alphabet
BUS_TEXTS = re.compile(r"/bus[/.-]|dead.letters?|bulk|^docs/(?:how-to|operations|concepts|explanation)/")
USER_PAGES = (
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "clients/", "docs/explanation/",
    "docs/index.md", "docs/tutorial/", "docs/how-to/", "docs/reference/", "docs/concepts/",
    "docs/operations/", "examples/",
)  # fmt: skip
WORDS_ONLY = ("docs/decisions/", "docs/specification/", "deploy/")  # these may cite the specification
UNCHANGING = ("migrations", "contracts")  # what was released keeps its words
VOCABULARY = "src/patra/studio/script/"  # words of the chapters that it reads
GENERATED = re.compile(r"^docs/reference/(pack|sources|ingest-planning|studio|bus-events|attribution-reasons)\.md$")
FILE = re.compile(r"`((?:src/patra|tests)/[\w./-]+\.\w+|(?:contract|property|unit|e2e)/(?:\w+/)*test_\w+)`")
ELSEWHERE = re.compile(r"\b(?:FACTS \d+|issue \d+|DESIGN:|STYLE:|STYLE,)|\((?:STYLE|STACK|HOUSE|DESIGN)\)")
SECTION_MARK = re.compile(r"(?:C?§ ?|\bch\. ?|\b[Cc]hapter )\d+(?:\.\d+)*")


def prose(text: str) -> str:
    """The text without its code, lines kept."""
    return re.sub(r"```.*?```|`[^`\n]*`", lambda code: re.sub(r"[^\n]", " ", code[0]), text, flags=re.DOTALL)


def shown(template: str) -> str:
    """A template without its expressions and tags, lines kept."""
    return re.sub(
        r"\{\{.*?\}\}|\{%.*?%\}|<[^>]*>", lambda code: re.sub(r"[^\n]", " ", code[0]), template, flags=re.DOTALL
    )


def anchors(text: str) -> set[str]:
    """What a link into the page may name: headings by their words, and explicit targets."""
    headings = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    words = {re.sub(r"[^\w\- ]", "", heading.replace("`", "")).lower().replace(" ", "-") for heading in headings}
    return words | set(re.findall(r'^<a id="([\w-]+)"></a>$', text, re.MULTILINE))


def broken_links(page: Path, text: str) -> Iterator[str]:
    for match in LINK.finditer(prose(text)):
        target, _, anchor = unquote(match[1]).partition("#")
        line = text.count("\n", 0, match.start()) + 1
        if "://" in target or target.startswith("mailto:") or (not target and anchor):
            continue  # the build of the documentation checks targets without a page
        file = (page.parent / target).resolve()
        if not file.exists():
            yield f"{page.relative_to(ROOT)}:{line}: there is no {target}"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
            yield f"{page.relative_to(ROOT)}:{line}: {target} has no #{anchor}"


def missing_files(page: Path, text: str) -> Iterator[str]:
    """Files of the repository that a page names in code and that are not there; `NAME` stands for any."""
    for match in FILE.finditer(text):
        path = match[1] if match[1].startswith(("src/", "tests/")) else f"tests/{match[1]}.py"
        if "NAME" not in path and not (ROOT / path).exists():
            yield f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: there is no {path}"


def uneven_tables(page: Path, text: str) -> Iterator[str]:
    """Rows with other cells than the head of their table has: a reader sees them shifted or cut."""
    expected = 0
    blank_code = re.sub(r"```.*?```", lambda code: re.sub(r"[^\n]", " ", code[0]), text, flags=re.DOTALL)
    for number, line in enumerate(blank_code.splitlines(), 1):
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        if cells and expected and cells != expected:
            yield f"{page.relative_to(ROOT)}:{number}: the table has {expected - 1} columns, this row {cells - 1}"
        expected = cells and (expected or cells)


def dialect(page: Path, text: str) -> Iterator[str]:
    name = page.relative_to(ROOT).as_posix()
    if not name.startswith((*USER_PAGES, *WORDS_ONLY)):
        return
    if not GENERATED.match(name) and "<!-- generated" not in text:
        yield from phrases(name, prose(text))
    if not name.startswith(("docs/", "examples/", "README.md")) or name.startswith(WORDS_ONLY):
        return
    unlinked = re.sub(r"\[[^\]\n]*\]\([^)\n]*\)", lambda link: " " * len(link[0]), prose(text))
    for match in SECTION_MARK.finditer(unlinked):
        line = text.count("\n", 0, match.start()) + 1
        yield f"{name}:{line}: {match[0]!r} cites the specification: link it, or leave it out"


def spaced(words: str) -> str:
    """A pattern whose spaces match any white space."""
    return words.replace("[ -]", r"[\s-]+").replace(" ", r"\s+")


def any_of(dialect: dict[str, str]) -> re.Pattern[str]:
    """Finds what may be one of them, in a source too, where a line break may be written as an escape."""
    words = "|".join(spaced(words) for words in dialect)
    return re.compile(rf"(?:(?<![\w-])|(?<=\\n))(?:{words})(?![\w-])", re.IGNORECASE)


ANY_DIALECT, ANY_BUS_DIALECT = any_of(DIALECT | USER_DIALECT), any_of(DIALECT | USER_DIALECT | BUS_DIALECT)


def maybe(name: str, text: str) -> bool:
    return (ANY_BUS_DIALECT if BUS_TEXTS.search(name) else ANY_DIALECT).search(text) is not None


def phrases(name: str, text: str, first_line: int = 1) -> Iterator[str]:
    if not maybe(name, text):
        return
    dialect = DIALECT | (BUS_DIALECT if BUS_TEXTS.search(name) else {})
    dialect |= {} if name.startswith("docs/specification/") else USER_DIALECT
    for words, better in dialect.items():
        for match in re.finditer(rf"(?<![\w-])(?:{spaced(words)})(?![\w-])", text, re.IGNORECASE):
            if not any(match.groups()):
                phrase = " ".join(match[0].split())
                yield f"{name}:{text.count(chr(10), 0, match.start()) + first_line}: {phrase!r}: write {better!r}"


def program_texts(name: str, source: str) -> Iterator[str]:
    """Findings in the docstrings and comments of a module, and in its other strings of more than one word."""
    if not maybe(name, source):
        return
    tree = ast.parse(source)
    stated = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if id(node) in stated or (" " in node.value and not name.startswith(VOCABULARY)):
            yield from phrases(name, prose(node.value), node.lineno)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from phrases(name, prose(token.string), token.start[0])


def other_texts(path: Path, name: str, text: str) -> Iterator[str]:
    """Findings in a template, a statement's comments, a script or a pack."""
    match path.suffix:
        case ".html":
            yield from phrases(name, shown(text))
        case ".sql":
            for number, line in enumerate(text.splitlines(), 1):
                if line.lstrip().startswith("--") and not line.startswith("-- name:"):
                    yield from phrases(name, prose(line), number)
        case _:
            yield from phrases(name, text)


def references_elsewhere(name: str, text: str) -> Iterator[str]:
    """Documents that a reader of the repository does not have."""
    for match in ELSEWHERE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield f"{name}:{line}: {match[0]!r} is in no document of this repository: say it here, or leave it out"


def findings() -> list[str]:
    return [
        finding
        for page in sorted(PAGES)
        for text in [page.read_text(encoding="utf-8")]
        for name in [page.relative_to(ROOT).as_posix()]
        for finding in [
            *broken_links(page, text),
            *missing_files(page, text),
            *uneven_tables(page, text),
            *dialect(page, text),
            *references_elsewhere(name, text),
        ]
    ] + [
        finding
        for path in sorted(ROOT.glob("src/patra/**/*"))
        if path.suffix in {".py", ".html", ".sql", ".js", ".lua", ".yaml"} and path.parent.name not in UNCHANGING
        for name, text in [(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))]
        for finding in [
            *(program_texts(name, text) if path.suffix == ".py" else other_texts(path, name, text)),
            *references_elsewhere(name, text),
        ]
    ]


if __name__ == "__main__":
    found = findings()
    for finding in found:
        print(finding)
    sys.exit(1 if found else 0)
