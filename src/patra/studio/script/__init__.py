"""A chapter's text goes in; a plan of scenes, shots and prompts comes out. Pure and deterministic (C§2.3, B6).

| file | in | out |
|---|---|---|
| `sentences` | chapter text | title, paragraphs, sentences with their places in the text |
| `lexicon` | words, English or Chinese | what they say of place, time, weather, mood, things and people |
| `scenes` | sentences and their tags | settings that carry over, scenes, characters |
| `shots` | scenes | shots: what is said, what is seen, how the camera moves |
| `plan` | all of it | the plan with a prompt for each worker and shot |
"""
