"""Conditions that need a person: rules, their state, acknowledgements, the loop that looks."""
