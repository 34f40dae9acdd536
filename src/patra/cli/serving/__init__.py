"""Processes that run until a signal ends them: everything, the HTTP interface alone, loops alone."""
