"""Module F against its second reading (`tests.model.attribution`).

| file | in | out |
|---|---|---|
| `hand.py` | a few words | events, batches and lines written by hand |
| `test_model_*.py` | such lines | the model checked against values worked out from the text |
| `dice.py`, `defects.py`, `logs.py` | chance | random replay logs |
| `test_logs*.py` | such logs | they reach every rule, and notice a rule that is changed |
| `compare.py`, `shrink.py` | what the engine and the model gave for a log | where they differ, on a small log |
| `test_engine_equals_model.py` | random logs | engine = model, on both databases, whatever the grouping |
"""
