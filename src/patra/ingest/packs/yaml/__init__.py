"""A pack's YAML with the place of every part, and the fields that it no longer has."""
