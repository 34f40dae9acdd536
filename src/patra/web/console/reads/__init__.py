"""What pages show and no query of HTTP gives: rates by the second, counts of the navigation, the shots of a film.

Everything else a page asks over the HTTP interface, in process.
"""
