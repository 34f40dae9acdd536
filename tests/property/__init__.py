"""Properties that hold for every input, searched with Hypothesis."""
