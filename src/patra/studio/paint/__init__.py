"""A picture in words goes in; moving frames drawn for it come out. No stock footage: every line is drawn (B6).

| file | in | out |
|---|---|---|
| `palette` | time, weather, mood | colours |
| `canvas` | colours, a seed | a surface with soft shapes, noise and glows |
| `sky` | a canvas | gradient, sun or moon, stars, clouds, ridges |
| `things` | a canvas and a place on it | boats, houses, trees, lighthouses, bridges … |
| `figures` | who, where, how large | people and animals |
| `places` | an outdoor picture | sea, harbour, river, forest, village, street … |
| `interiors` | an indoor picture | rooms with their light |
| `inserts` | a thing | a close look at it |
| `scene` | a picture | the painted layers of a shot |
| `camera` | the layers, a move, a moment | what the camera sees |
| `weather` | a frame's number | rain, snow, mist, leaves, fireflies |
| `narrator` | mouth shapes | a narrator whose mouth follows them |
| `frames` | all of it, frame by frame | raw frames with camera moves, cuts and titles |
"""
