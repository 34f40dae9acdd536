"""Turns sentences into speech with word and phoneme times, and the mouth shapes that go with it (B6).

| file | in | out |
|---|---|---|
| `espeak` | one sentence, a voice | samples, words and phonemes with their times |
| `piper` | one sentence, the files of a neural voice | a WAV, by the program Piper where it is there |
| `narration` | the sentences of a shot | one WAV of whole frames, and a timing of all that is said |
| `visemes` | phonemes with times | mouth shapes, one a picture frame |
"""
