"""What one engine reports, carried to the bus, to webhooks or to e-mail."""
