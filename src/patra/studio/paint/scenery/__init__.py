"""Places without people: sky, terrain, water, weather, rooms."""
