"""Clients in other languages against real servers."""
