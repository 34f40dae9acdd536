"""Module F against its second reading (`tests.model.attribution`).

| file | in | out |
|---|---|---|
| `hand.py` | a few words | events, batches and lines written by hand |
| `test_model_*.py` | such lines | the model checked against values worked out from the text |
| `logs.py` | dice | random replay logs |
| `compare.py` | what the engine and the model gave for a log | where they differ |
| `test_engine_equals_model.py` | random logs | engine = model, on both databases, whatever the grouping |
"""
