"""The installation, inspected and maintained: settings, migrations, tokens, audit, outbox, backup, doctor."""
