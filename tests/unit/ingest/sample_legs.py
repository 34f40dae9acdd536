"""Legs and snapshots for tests, with what a test does not care about filled in."""

from typing import Any

from patra.ingest.packs.sections import (
    Auth,
    Batching,
    Expr,
    Http,
    Limits,
    Ordering,
    Pagination,
    RateLimit,
    Response,
    Retry,
)
from patra.ingest.packs.spec import Leg, Mapping
from patra.ingest.vocabulary.codes import Access, HttpMethod, PaginationType, Role


def leg(**given: Any) -> Leg:
    sections: dict[str, Any] = {
        "endpoint_code": "search",
        "role": Role.SEARCH,
        "access": Access.PUBLIC,
        "http": Http(method=HttpMethod.GET, base_url="https://api.example.org", path_template="/works"),
        "auth": Auth(),
        "pagination": Pagination(type=PaginationType.OFFSET, page_size=10),
        "ordering": Ordering(),
        "response": Response(items_path="$.items", id_path="$.id", updated_at_path="$.updated"),
        "errors": [],
        "expr": Expr(),
        "mapping": Mapping(),
        "params": {},
        "retry": Retry(),
        "rate_limit": RateLimit(),
        "limits": Limits(),
        "batching": Batching(),
    }
    return Leg(**(sections | given))
