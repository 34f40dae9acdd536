"""Second readings of the specifications, written for the tests without a look at `src`."""
