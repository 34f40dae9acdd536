"""What `patra ingest try` is made of: `request` (what is asked), `pages` (list and details), `bounds`, `notes`."""
