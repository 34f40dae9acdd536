"""Proofs at full size: `./dev prove` runs every module here that has a `main()`; a short form of each is in the tests.

A proof's docstring begins with one line that says what it proves. `main()` returns a line with its figures, and raises
when the promise does not hold.
"""
