"""The operator's console: server-rendered pages over the HTTP interface's own functions.

| module | what it is for |
|---|---|
| `markup` | tones, formats, drawings, JSON: what templates are made of |
| `assets` | our style sheets and scripts and vendored htmx, by hash |
| `calls` | the HTTP interface asked in process: same roles, same audit |
| `view` | what a page's function gets and gives |
| `needs` | what needs a person, of all engines |
| `navigation` | the entries of the navigation |
| `reads` | rates, counts of the navigation, shots of a film: what HTTP has no query for |
| `reasons`, `rules` | the meaning of every reason code; paragraphs of the specification |
| `act`, `acts` | what can be done, as a table of endpoints with levels of confirmation |
| `render` | Jinja, autoescaped, nothing undefined |
| `pages` | one module for each engine: a question's address to its answer |
| `access`, `forms`, `outcomes` | sessions and form tokens, fields of forms, one act for one form |
| `responses`, `live` | headers, streams |
| `application` | the ASGI application below `/console` |
"""
