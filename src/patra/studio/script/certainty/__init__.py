"""Decides what of a shot is certain: a scene is drawn only where its understanding is, else the shot is a card (C§2.3).

| file | in | out |
|---|---|---|
| `evidence` | | the table of evidence, each with how often what it says is right |
| `claims` | evidence | claims, and how likely they all hold |
| `exact` | a word in its sentence | whether its drawing is certainly what it names |
| `people` | a shot's sentences | claims on who is seen, of which sex and age, and on who is missing |
| `elsewhere` | a sentence and a place | what speaks against that it is there |
| `surroundings` | a shot's sentences | claims on the place and the things |
| `clothes` | the figures of a shot | them in the colour that the text says |
| `cards` | a shot and its claims | the shot as it is, or as a card with what of it is certain |
"""
