"""The store: one small interface over SQLite and PostgreSQL.

| file | in | out |
|---|---|---|
| `queries` | named SQL in `sql/*.sql` | `Statement`, rendered for each dialect |
| `api` | statements, sets of rows | `Database`, `Tx`, and the set operations that both databases share |
| `sqlite_file` | a file that is only looked at | a connection that changes no byte of it |
| `sqlite` | `sqlite:///file.db` | a `Database` on one file, one writer, WAL |
| `pool` | `postgresql://…` | connections, at most so many at once |
| `liveness` | connections in use | waits for a silent server ended |
| `postgres_parameters` | values, rows, sets | parameters as psycopg takes them |
| `postgres` | `postgresql://…` | a `Database` on a pool |
| `postgres_copy` | a transaction on PostgreSQL | tables as COPY writes and reads them |
| `partitions` | a table whose numbers grow, on PostgreSQL | its partitions: made ahead, dropped whole |
| `opening` | a URL | the `Database` for it |
| `migrate` | `sql/migrations/*.sql` of each package | the tables, and a checksum of what made them |
"""

from patra.kernel.db.api import Database, Row, Tx, Value, claim_taken
from patra.kernel.db.migrate import Migration, migrate, pending_migrations
from patra.kernel.db.opening import open_database
from patra.kernel.db.queries import Dialect, Queries, Statement

__all__ = [
    "Database",
    "Dialect",
    "Migration",
    "Queries",
    "Row",
    "Statement",
    "Tx",
    "Value",
    "claim_taken",
    "migrate",
    "open_database",
    "pending_migrations",
]
