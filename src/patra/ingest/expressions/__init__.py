"""The expression language of packs (ch. 4.8), and the paths and cleaners of mappings (ch. 4.7, 3.3.4).

| module | for |
|---|---|
| `values`, `functions` | values with their bounds; the whitelist of functions |
| `expression`, `evaluation` | the grammar; the closures that a compiled expression is made of |
| `expression_code` | expressions as text, for generated mappings |
| `template`, `scopes` | templates (`rows=${page.size}`); which names may be read where |
| `escaping` | text made harmless for its place in a request |
| `paths`, `path_filters`, `path_bounds` | JSONPath and XPath; filters compiled into lookups; bounds on their work |
| `cleaners`, `markup`, `bibliography` | mapped values in one form; texts out of markup; people, pages, licences |
"""
