"""The bus."""
