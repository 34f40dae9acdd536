"""Sentences go in; speech with word and phoneme times, and the mouth shapes that go with it, come out (B6).

| file | in | out |
|---|---|---|
| `espeak` | one sentence, a voice | samples, words and phonemes with their times |
| `narration` | the sentences of a shot | one WAV of whole frames, and a timing of all that is said |
| `visemes` | phonemes with times | mouth shapes, one a picture frame |
"""
