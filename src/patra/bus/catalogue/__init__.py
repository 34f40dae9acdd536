"""What may be published: contracts of event types, with versions that evolve by rules.

| module | for |
|---|---|
| `catalogue` | contracts as YAML: producer, schema, ordering, retries, consumers (C§5, B3) |
| `schema` | the JSON Schema of a payload, and what is wrong with one (C§1) |
| `type_schema` | the JSON Schema of a type of msgspec or pydantic |
| `versions` | versions and ranges of versions (C§4) |
| `evolution` | whether the next catalogue may follow the released one: minor, major, retired (C§4, B4) |
| `registered_types` | types that other programs registered on a store, beside one's own (B4, B8) |
| `minor_versions` | fields that a payload's own minor does not have yet (C§4, B4) |
| `retries` | how often and how late a type is retried (B5) |
| `reasons` | every code that the bus gives |
"""
