"""Shows the beginning of a body that others sent: redacted first and cut then, lest half a secret stay at its end.

Redaction looks at more than it shows, which costs three times what the excerpt itself does. Where the text can be cut
soon behind the excerpt, and nothing before the cut is masked, what stands behind it is not looked at.
"""

import re

from patra.kernel.safety.known_secrets import EXCERPT_MARGIN_BYTES, WORDLIKE_CHARACTERS, scrub_known
from patra.kernel.safety.redact import redact_text

SHAPE_CHARS = 2400
"""Behind the end of an excerpt: where a text that has the shape of a secret has shown it, the longest in a URL."""
_CUT = re.compile(r"\",|>").search
"""No name with its colon, URL, address, number or key goes on behind these; the value of a name that does begins before
them, so it is masked before them as well.
"""


def redacted_excerpt(body: bytes, size: int) -> str:
    """The beginning of a body as one may show it.

    A secret of this process is looked for whole, however long; what has the shape of one shows it within `SHAPE_CHARS`.
    """
    text = scrub_known(body[: size + EXCERPT_MARGIN_BYTES].decode("utf-8", "replace"), WORDLIKE_CHARACTERS)
    whole = text[: size + SHAPE_CHARS]
    if (cut := _CUT(whole, size)) is not None:
        head = whole[: cut.end()]
        if redact_text(head) == head and scrub_known(whole) == whole:
            return head[:size]
    shown = redact_text(whole)
    if len(shown) < size + SHAPE_CHARS // 2:  # masks have drawn the cut end near to what is shown
        shown = redact_text(text)
    return shown[:size]
