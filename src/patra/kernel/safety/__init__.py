"""Protection against leaks, untrusted input and want: URLs, addresses, known secrets, redaction, text, threads."""
