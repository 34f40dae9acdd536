"""Who acts and how far they may go: actors, bearer tokens, sessions of the console, one audit row per act."""
