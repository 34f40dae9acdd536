"""Turns frames, sound and captions into clips and films of ffmpeg, streamed, never held in memory (B6).

| file | in | out |
|---|---|---|
| `quality` | draft, standard, high | size, frame rate, encoder settings |
| `ffmpeg` | raw frames, samples, files | clips, probes; the one place that runs ffmpeg |
| `timeline` | the shots that were made | when each begins, and what is said when |
| `subtitles` | a timeline | SRT and ASS |
| `loudness` | samples | how loud they are, and the gain they need |
| `chapters` | shots and when they begin | the marks of the film's chapters |
| `ambience` | speech, what the pictures show | the same with rain, sea, fire … and a soft pad |
| `stills` | a clip | a picture of it |
| `compose` | a timeline with its clips | the film |
"""
