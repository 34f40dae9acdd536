"""The story of a key: one timeline across all engines for any key that the system knows.

| module | what it does |
|---|---|
| model | the answer: entries, pending work, related keys, candidates, where was looked |
| keys | which kinds of key a text can be, by its form |
| paragraphs | links to the paragraphs of the specification |
| attribution, ingest, bus, studio | what one engine knows about a key; index lookups only |
| attribution_keys, attribution_pending, ingest_entries, statements | parts of those: keys, pending work, entries |
| sentences | parts of sentences that the engines' texts share |
| timeline | entries of several engines in one order, redacted, in pages |
| verdict | what became of a key, in a sentence or two |
| search | asks the engines, chooses between candidates, follows keys from one engine to another |

An engine module has one function, `look_up(tx, key, kind, limit) -> Lookup`. Modules of an engine are imported there
and nowhere else.
"""
