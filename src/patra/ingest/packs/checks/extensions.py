"""Extensions that a pack names must be installed; they are not imported for the check."""

from collections.abc import Iterator

from patra.ingest.packs.checks.draft import Draft
from patra.ingest.packs.extensions import ExtensionPoint, extension_names
from patra.ingest.packs.problems import Problem, TreePath
from patra.ingest.vocabulary.reasons import Reason


def check_extensions(draft: Draft) -> Iterator[Problem]:
    at = draft.at
    named: list[tuple[TreePath, str | None, ExtensionPoint]] = [
        (("auth", "signingHook"), at.auth.signing_hook, ExtensionPoint.SIGNING),
        (("auth", "tokenHook"), at.auth.token_hook, ExtensionPoint.AUTHENTICATION),
        (("pagination", "nextTokenHook"), at.pagination.next_token_hook, ExtensionPoint.PAGING),
        (("response", "decoder"), at.response.decoder, ExtensionPoint.DECODING),
    ]
    for path, name, point in named:
        if name is not None and name not in (known := extension_names(point)):
            yield draft.error(
                Reason.EXTENSION_UNKNOWN,
                path,
                f"no {name!r} is installed in the group {point.value}",
                f"known: {', '.join(known) or 'none'}; install the distribution that brings it",
            )
