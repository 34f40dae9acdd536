"""A pack begun from a sample answer: what can be read off it is written down, what a person must decide is marked TODO.

| file | in | out |
|---|---|---|
| sample.py | the body of an answer, its URL and headers | its format, the path to the records, the records |
| spots.py | records | every place in them: its path, its names, what stands there |
| fields.py | places | the id, the update time, what maps to a work |
| listing.py | a sample | how pages are walked, the total, the query with its dates as a window |
| text.py | all of it | the pack as YAML with comments |
"""

from patra.ingest.packs.scaffold.sample import Sample
from patra.ingest.packs.scaffold.text import start_pack

__all__ = ["Sample", "start_pack"]
