"""Cases that show the effect of each field of the pack format: a change of that field alone, and what is observed."""
