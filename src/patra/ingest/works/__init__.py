"""Records read as works of one common shape, merged across sources, joined, and written to files.

| module | for |
|---|---|
| `read` | records as they are, or as works |
| `merge`, `join` | the same work of several sources as one; page by page |
| `export`, `file_writers` | rows; JSONL, CSV, Parquet, DuckDB |
| `citation_formats`, `citation_names` | CSL-JSON, BibTeX, RIS; the parts of a name |
| `scheduled_export` | exports that schedules ask for |
| `docs`, `semantics_table` | pages about the packs of the distribution |
"""
