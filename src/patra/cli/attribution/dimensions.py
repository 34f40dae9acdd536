"""`patra attribution settle` in combinations of dimensions and with filters."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from patra.cli.terminal.options import open_patra, spare_the_store, table


def settle_by_dimensions(
    config: str | None,
    span: tuple[int, int],
    dimensions: Sequence[Any],
    filters: Mapping[Any, str],
    form: str,
    out: str | None,
) -> None:
    """Count and write in the form that was asked for."""
    import msgspec

    from patra.attribution.settlement.dimensions import counts_by
    from patra.attribution.settlement.export import rows_as_csv, rows_as_parquet
    from patra.attribution.settlement.facts import settled_facts
    from patra.cli.terminal.empty import explanation

    begin, end = span
    with open_patra(config) as patra:
        if out is not None:
            spare_the_store(patra, out)
        found = counts_by(settled_facts(patra.db, begin, end, filters.get("app", "")), dimensions, filters)
    columns = [*dimensions, "impressions", "clicks"]
    match form:
        case "parquet":
            types = dict.fromkeys(dimensions, "VARCHAR") | {"impressions": "BIGINT", "clicks": "BIGINT"}
            rows_as_parquet(types, found.rows(), out or "")
        case "table":
            total = ["total", *[""] * (len(dimensions) - 1), found.impressions, found.clicks]
            rows = [[row[name] for name in columns] for row in found.rows()]
            table(columns, [*rows, total])
            if not rows:
                click.echo(explanation(), err=True)
        case _:
            text = rows_as_csv(columns, found.rows()) if form == "csv" else msgspec.json.encode(found).decode() + "\n"
            with click.open_file(out or "-", "w", encoding="utf-8") as file:
                file.write(text)
