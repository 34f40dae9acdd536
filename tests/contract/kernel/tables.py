"""A table with a column of every type, and the rows that databases are known to trip over."""

from patra.kernel.db import Database, Tx
from patra.kernel.db.queries import statement

CREATE = "CREATE TABLE thing (name TEXT PRIMARY KEY, n BIGINT, body {blob}, ratio DOUBLE PRECISION, at BIGINT)"
COLUMNS = ("name", "n", "body", "ratio", "at")

ALL = statement("all", "SELECT name, n, body, ratio, at FROM thing ORDER BY name")
COUNT = statement("count", "SELECT count(*) FROM thing")
ADD = statement("add", "INSERT INTO thing (name, n) VALUES (:name, :n)")
ECHO = statement(
    "echo",
    "SELECT place, name, n, body, ratio FROM rows",
    "place int, name text, n int, body blob, ratio real",
)

ODD_TEXTS = [
    "",
    " ",
    "plain",
    "null",
    "it's",
    'say "so"',
    "back\\slash \\x41 \\u0041 \\n",
    "%s %(name)s %% :name ?1 $1",
    "line\nfeed\r\ttab",
    "{curly} [square], (round); -- comment /* too */",
    "中文、日本語",
    "👩🏽\u200d🚀",
    "e\u0301 and é",
    "\u202eright to left",
    "\ufeff\ufffe\uffff",
    "\x01\x1f\x7f\x80",
    "\U0010ffff",
    "x" * 100_000,
]
ODD_INTS = [0, 1, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), None]
ODD_BLOBS = [b"", b"\x00", b"\x00\x01\x00", b"\\x00", b"'", b"\xff\xfe\x80", bytes(range(256)) * 40, None]
ODD_REALS = [0.0, 1.5, -2.25, 1e-300, 1.7976931348623157e308, 0.1 + 0.2, 5e-324, None]


def create_thing(db: Database) -> None:
    blob = "BLOB" if db.dialect == "sqlite" else "BYTEA"
    db.run(lambda tx: tx.script(CREATE.replace("{blob}", blob)))


def things(db: Database) -> list[tuple]:
    return db.read(lambda tx: tx.fetch(ALL))


def names(db: Database) -> list[str]:
    return [row[0] for row in things(db)]


def add(tx: Tx, name: str, n: int = 0) -> None:
    tx.execute(ADD, {"name": name, "n": n})
