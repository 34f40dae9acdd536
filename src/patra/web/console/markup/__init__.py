"""What templates are made of, without templates: words for values, drawings as SVG, JSON in colours.

| module | what it makes |
|---|---|
| `element` | one element with its values escaped |
| `tones` | the tone and shape of every state of every machine |
| `formats` | instants, spans of time, numbers, keys, as a reader expects them |
| `json_view` | JSON coloured on the server, and the difference of two documents |
| `schema_diff` | a payload compared with its schema, field by field |
| `masked_text` | text without secrets and personal data |
| `flow_drawing`, `story_axis`, `story_lanes` | the flow of events and the axis of a story as SVG |
| `run_lane` | the batches of a run: waits, requests, answers of 429 |
| `machine_drawing` | a state machine with the way that was taken, from its table |
| `time_brush` | a drawing on an axis of time from which a span is taken |
| `shot_bar` | the shots of a film on its length, each a link to its place |
| `row_choice` | boxes of rows that are chosen, and the form that does one act to them |
| `drawings` | sparks, bars and window strips as SVG without inline style |
"""
