"""Second readings of the specifications, written for the tests without reading `src`."""
