"""Turns a chapter's text into a plan of scenes, shots and prompts. Pure and deterministic (C§2.3, B6).

| file | in | out |
|---|---|---|
| `language` | chapter text | its language; English and Chinese are understood |
| `sentences` | chapter text | title, paragraphs, sentences with their places in the text |
| `depiction` | a sentence | the part of it that is there to be seen: not denied, compared with or only spoken of |
| `signs` | a word for a place | what is lettered on a sign: the place has no drawing of its own |
| `tables/` | words | pictograms, words of two senses, given names |
| `lexicon` | words, English or Chinese | what they say of place, time, weather, mood, things and people |
| `pictograms` | words | pictograms for things that no drawing knows |
| `words/` | words | what is lettered because nothing shows it; small groups of people |
| `facts` | a sentence | a card: number, comparison, list, definition |
| `cast/` | sentences | names, kinds and ages of people, and who is not there |
| `references`, `people` | sentences | who is in the chapter, of which kind, and whom each word means |
| `dialogue` | quotations | who speaks to whom |
| `style` | all of these | whether the chapter explains or tells a story, and whether its paragraphs are episodes |
| `scenes` | sentences and their tags | settings that carry over, scenes, characters |
| `shots` | scenes | shots: what is said, what is seen, how the camera moves |
| `certainty/` | shots | the scenes that are certain; cards with what is certain of the others |
| `edits` | shots, what someone wants changed | the shots as they are wanted |
| `plan` | all of it | the plan with a prompt for each worker and shot |
"""
