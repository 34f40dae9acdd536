"""The checks of 3.3.3 and the nine of 4.17: every problem of a draft, each with its place in the file.

| file | in | out |
|---|---|---|
| draft.py | pack, endpoint, operation, merged sections | what the checks look at |
| access.py | draft | no. 1 and 9: authentication, credentials, redaction, hosts |
| given_params.py | draft, values of a trigger or schedule | parameters: known, there, by their rules |
| extensions.py | draft | extensions that are not installed |
| listing.py | draft, names read | required parts; no. 2: pagination (ch. 4.3.2, 4.3.4) |
| reading.py | draft | no. 5: paths, templates, output fields |
| sent_bounds.py | draft, templates of the request | the end of a window is sent as finely as it is declared |
| windows.py | draft, names read | no. 3 and 8: window, watermark, cursor, operation (ch. 6.2 to 6.4) |
| bounds.py | draft, names read | no. 4 and 6: two phases, what the provider allows |
| dictionary.py | draft, dictionary | no. 7: codes |
"""

from patra.ingest.packs.checks.access import base_url, check_access, on_hosts
from patra.ingest.packs.checks.bounds import check_limits, check_two_phase
from patra.ingest.packs.checks.dictionary import BUILT_IN, check_dictionary
from patra.ingest.packs.checks.draft import Dictionary, Draft, legs
from patra.ingest.packs.checks.extensions import check_extensions
from patra.ingest.packs.checks.listing import check_listing, check_required
from patra.ingest.packs.checks.reading import check_output, check_paths, request_templates
from patra.ingest.packs.checks.sent_bounds import check_sent_bounds
from patra.ingest.packs.checks.windows import DEFAULT_TYPE, FITS, ITEM_ID, check_operation, check_window
from patra.ingest.packs.problems import Problem

__all__ = ["BUILT_IN", "DEFAULT_TYPE", "FITS", "ITEM_ID", "Dictionary", "Draft", "base_url", "check", "on_hosts"]


def check(draft: Draft, dictionary: Dictionary) -> list[Problem]:
    """Everything that is wrong with a draft, its detail leg included."""
    found: list[Problem] = list(check_operation(draft))
    reads: dict[bool, frozenset[str]] = {}
    for leg in legs(draft):
        found += check_dictionary(leg, dictionary)
        found += check_required(leg)
        found += check_access(leg)
        found += check_extensions(leg)
        templates = request_templates(leg, found)
        read = reads[leg.second] = frozenset(name for one in templates.values() for name in one.names)
        found += check_listing(leg, read)
        found += check_window(leg, read)
        found += check_sent_bounds(leg, templates)
        found += check_paths(leg)
        found += check_limits(leg)
        if leg is draft.detail or not draft.has_details:
            found += check_output(leg)
    found += check_two_phase(draft, reads.get(True, frozenset()))
    return found
