"""Protection against leaks, untrusted input and a lack of threads: URLs, addresses, secrets, redaction, text."""
