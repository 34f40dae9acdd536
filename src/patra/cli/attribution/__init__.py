"""`patra attribution …`: `group` has the group and what asks; the others are loaded when they are called."""
