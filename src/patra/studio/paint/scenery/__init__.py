"""Places without people: sky, terrain, water, weather, rooms.

| file | in | out |
|---|---|---|
| `sky`, `terrain`, `waters`, `weather` | hour and weather | what places share |
| `wilds`, `towns`, `grounds` | the word of a place | a cave, a glacier; a market, a yard; an airport, a canal |
| `places` | a picture | its outdoor place |
| `light`, `rooms`, `public_rooms` | the word of a room | its furniture: a ward, a class; a church, a carriage |
| `interiors` | a picture | its room |
"""
