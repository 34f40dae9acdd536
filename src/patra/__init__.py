"""Patra: what arrives at least once leaves exactly once, and every decision can be explained and replayed."""

__version__ = "0.1.0"
