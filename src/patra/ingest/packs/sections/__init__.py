"""The strategy bits of chapter 4: each a struct whose fields carry their documentation, default and bounds.

| file | in | out |
|---|---|---|
| base.py | | what every bit is made of |
| transport.py | ch. 4.2 | Http, Body, Auth, OAuth2, Credential, Param |
| paging.py | ch. 4.3 to 4.5, 10 | Pagination, Ordering, Window, Cursor |
| flow.py | ch. 4.6, 4.10 to 4.12, 4.14, 8 | RateLimit, Limits, Retry, Batching, TwoPhase, Planning, Update |
| reading.py | ch. 4.7, 4.8, 4.13 | Expr, Response, ErrorRule, NamedRule, Field, Output |
"""

from patra.ingest.packs.sections.base import Bit
from patra.ingest.packs.sections.flow import (
    Batching,
    KeyBounds,
    Limits,
    Planning,
    RateAuthenticated,
    RateHeaders,
    RateLimit,
    Retry,
    TwoPhase,
    Update,
)
from patra.ingest.packs.sections.paging import ALIGNMENT, Cursor, Initial, Ordering, Pagination, Window
from patra.ingest.packs.sections.reading import ErrorRule, Expr, Field, NamedRule, Output, Response
from patra.ingest.packs.sections.transport import Auth, Body, Credential, Http, OAuth2, Param

__all__ = [
    "ALIGNMENT",
    "Auth",
    "Batching",
    "Bit",
    "Body",
    "Credential",
    "Cursor",
    "ErrorRule",
    "Expr",
    "Field",
    "Http",
    "Initial",
    "KeyBounds",
    "Limits",
    "NamedRule",
    "OAuth2",
    "Ordering",
    "Output",
    "Pagination",
    "Param",
    "Planning",
    "RateAuthenticated",
    "RateHeaders",
    "RateLimit",
    "Response",
    "Retry",
    "TwoPhase",
    "Update",
    "Window",
]
