"""Each engine built from the settings, with its loops and health checks."""
