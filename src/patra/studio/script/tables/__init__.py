"""Tables of words that the lexicon and the pictograms read.

| file | in | out |
|---|---|---|
| `senses` | a word in its sentence | whether it means something else than what is drawn for it |
| `things` | a word | its pictogram |
"""
