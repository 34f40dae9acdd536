"""Turns a picture in words into moving frames drawn for it. No stock footage: every line is drawn (B6).

| file | in | out |
|---|---|---|
| `palette` | time, weather, mood | colours |
| `canvas` | colours, a seed | a surface with soft shapes, noise and glows |
| `scenery/` | a picture without people | sky, terrain, water, weather, outdoor places, rooms with their light |
| `things` | a canvas and a place on it | boats, houses, trees, lighthouses, bridges … |
| `figures` | who, where, how large | people and animals |
| `inserts` | a thing | a close look at it |
| `pictogram` | a name, a place | a pictogram of an open icon font, in the colours of the picture |
| `plates` | a picture | plates with pictograms and words for what its scene does not draw, the sign of its place |
| `lettering` | words, a place | words in the fonts of the film |
| `cards` | a number, list, definition, comparison | a chart, a list or lettering on paper |
| `portraits` | who | head and shoulders in a round frame; a silhouette where nobody says how they look |
| `pages` | words, what is certain of a scene | an illustrated page |
| `scene` | a picture | the painted layers of a shot |
| `camera` | the layers, a move, a moment | what the camera sees |
| `narrator` | mouth shapes | a narrator whose mouth follows them |
| `frames` | all of it, frame by frame | raw frames with camera moves, cuts and titles |
"""
