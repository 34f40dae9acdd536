"""One request: rendered, signed with its credential, sent, and its body decoded within bounds (ch. 4.2).

| module | for |
|---|---|
| `request`, `body_template` | the request of a page; its body as a form, JSON or text |
| `upper_bound` | the upper bound of a window, as the request can express it (I11) |
| `credentials` | secrets of a credential, for the request alone (ch. 3.8) |
| `client` | sends a request to declared hosts (I8); the kinds of failure |
| `content_encoding` | decompression, never beyond the bound |
"""
