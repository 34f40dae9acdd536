"""Source packs: read, merged, checked, compiled into a sealed snapshot, stored in the registry.

| module | for |
|---|---|
| `sections/`, `schema`, `struct_types`, `text_kinds` | the format: structs, and what they declare about fields |
| `yaml/`, `problems` | YAML with the place of every part; what is wrong with a pack |
| `merge`, `checks/`, `compiler`, `spec`, `provenance` | from five levels to one snapshot; origin of each value |
| `registry`, `registry_rows`, `diff` | the registry (ch. 3.1, I5); packs as rows and back; what changed |
| `staged_release`, `secret_grants`, `extensions` | a version on trial; secrets a source may use; entry points |
| `work` | the common shape of a record |
| `scaffold/`, `bundled/` | a first pack from a sample response; the packs of the distribution |
"""
