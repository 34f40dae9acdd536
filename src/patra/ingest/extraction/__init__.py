"""From a response to fields: its class, its items, the next page, the mapping to the output.

| module | for |
|---|---|
| `body_parser`, `xml_repair` | bytes to a document, strict first; characters that XML forbids |
| `classify` | error taxonomy: the class of a response, L1 to L4, and the action (ch. 12.1, 4.13) |
| `response`, `items` | items of a page and what it says of the list (ch. 4.7) |
| `list_outline`, `projection`, `xml_splitter` | reads only as much of a large body as is needed |
| `pagination`, `page_moves` | the next page, or the end of the list; bridging to TIME (ch. 4.3, 4.3.4) |
| `key_ranges` | windows larger than the provider pages, read by ranges of a key (I4) |
| `mapping`, `mapping_code` | a record to the fields of the output (ch. 3.3.4); the functions generated for it |
| `field_types` | what `type`, `map` and `enum` of a field make of its value |
| `completeness` | what a window promised against what came (I10) |
"""
