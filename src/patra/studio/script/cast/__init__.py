"""Who is in a chapter: their names, their ages, and who is not there (C§2.3).

| file | in | out |
|---|---|---|
| `roles` | | words for people, titles, given names of our own with their sex |
| `given_names` | a given name | whether women or men have it |
| `segments`, `chinese_names` | a Chinese chapter | its words, and which of them are names |
| `names` | a chapter | its names, each with its kind, and other words for the same person |
| `phrases` | | patterns of the words around people |
| `mentions`, `pointers` | a sentence | the words in it that may point to a person |
| `identity` | mentions | who is one person although two words name them |
| `presence` | the words around a person | whether they are dead, far away or only in what is said |
| `crowds` | a sentence | whether it is about many people |
| `ages` | sentences | who is a child there, and who is old |
"""
