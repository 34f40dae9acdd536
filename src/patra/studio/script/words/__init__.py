"""What else words say: what is lettered because nothing shows it, and small groups of people.

| file | in | out |
|---|---|---|
| `nouns` | a sentence | the things that neither a drawing nor a pictogram shows |
| `groups` | a sentence | two sisters, three boys, parents: how many people of which kind |
"""
