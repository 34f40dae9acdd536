"""Turns places into the id, the update time and what maps to a work, each with the others that could be it."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from patra.ingest.expressions.cleaners import clean
from patra.ingest.packs.scaffold.spots import Places, Spot
from patra.ingest.vocabulary.instants import Precision, read_instant

MIN_MATCHING_SHARE = 0.6
"""Share of the values at a place that must be of the right kind."""
MIN_MATCHING_DATE_SHARE = 0.4
"""The same for dates, which many records do not know: `[[null]]`, `n.d.`"""

_ELSEWHERE = re.compile(
    r"(^|/)(reference|citation|related|relation|parent|funder|funding|award|grant|concept|topic|keyword|subject|mesh|"
    r"review|license|assertion|institution|is_part_of|update_to|counts|biblio|abstract_inverted_index|comments)s?\w*/"
)
"""Names of parts that are about something else than the record."""
_HOST = re.compile(
    r"(^|/)(journal|container|source|venue|host|publication_|book|series|conference|issue|primary_location|locations|"
    r"author|creator|contributor|event|channel)\w*"
)


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What a field is read from; `others` are paths that could be meant instead."""

    field: str
    path: str
    apply: Sequence[str] = ()
    type: str | None = None
    expr: str | None = None
    values: Sequence[Any] = ()
    others: Sequence[str] = ()


class Authors(msgspec.Struct, frozen=True, kw_only=True):
    """Where authors stand: a list of objects or of texts (`each`), or one text (`path`) with a separator."""

    each: str | None = None
    path: str | None = None
    inner: Mapping[str, Choice] = {}
    separator: str = ""
    turned: bool = False
    """Whether names are written as `Lovelace, Ada`."""


class Fields(msgspec.Struct, frozen=True, kw_only=True):
    id: Choice | None
    distinct: Sequence[str]
    """Where no field is called an id: paths whose values are in every record, each another."""
    updated: Choice | None
    changes: bool
    """Whether `updated` is called after a change, or is just some date."""
    deleted: Choice | None
    work: Sequence[Choice]
    authors: Authors | None


class _Rule(msgspec.Struct, frozen=True, kw_only=True):
    field: str
    names: tuple[str, ...]
    fits: Callable[[Any], bool]
    apply: tuple[str, ...] = ()
    type: str | None = None
    unlike: re.Pattern[str] | None = None
    expr: str | None = None
    hosted: bool = False
    """Whether parts about a journal or a host are the right place."""


def _text(least: int = 1) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and len(value.strip()) >= least


def _cleans(*names: str) -> Callable[[Any], bool]:
    return lambda value: clean(list(names), value) is not None


def _date(value: Any) -> bool:
    if isinstance(value, int) and not 1500 < value < 2200 and not 10**8 < value < 10**14:
        return False
    return not isinstance(value, bool | float) and read_instant(value) is not None


def _exact(value: Any) -> bool:
    """Known to the day or better, as a time of change is."""
    moment = read_instant(value) if not isinstance(value, bool | float) else None
    return moment is not None and moment.precision in {Precision.DAY, Precision.INSTANT} and _date(value)


def _link(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(("http://", "https://"))


def _is_inverted(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, list) for item in cast("dict[str, Any]", value).values())


_UPDATED = (
    r"(.*/)?((last_)?(updated|modified|changed|indexed|revised)(_at|_on|_date|_time|date)?|date_?stamp)(/(date_time|value))?",
    r"(.*/)?(date_(updated|modified|revised|last_indexed)|modification_date|\w*(last_update|revision)\w*)(/(date|value))?",
    r"(.*/)?\w*(updated|modified|indexed)\w*(/(date_time|date|value|timestamp))?|(.*/)?update_date",
    r"timestamp|(.*/)?created\w*(/(date_time|value))?|deposited/date_time|date_created|first_index_date",
)
_DATES = (
    r"(.*/)?(published|issued|publication_date|date_published|published_date|first_publication_date|pub_date|date_issued)",
    r"(.*/)?(publication_year|pub_year|year|date|published_\w+|start_date|prism_date|created)",
    r"(.*/)?\w*(date|year)(/\w+)?",
)
_RULES = (
    _Rule(
        field="doi",
        names=(r"(.*/)?doi", r"(.*/)?\w*doi\w*", r"(.*/)?(id|identifier|uri)"),
        fits=lambda value: isinstance(value, str) and "10." in value and clean(["doi"], value) is not None,
        apply=("doi",),
        unlike=re.compile(r"published_doi|version|concept"),
    ),
    _Rule(field="pmid", names=(r"(.*/)?(pmid|pub_?med(_?id)?)",), fits=_cleans("digits"), apply=("digits",)),
    _Rule(field="pmcid", names=(r"(.*/)?(pmcid|pmc(_?id)?)",), fits=_cleans("pmcid"), apply=("pmcid",)),
    _Rule(
        field="arxiv",
        names=(r"(.*/)?(arxiv\w*|ar_xiv\w*)", r"id"),
        fits=lambda value: isinstance(value, str) and "10." not in value[:3] and clean(["arxiv"], value) is not None,
        apply=("arxiv",),
    ),
    _Rule(
        field="openalex",
        names=(r"id|(.*/)?openalex",),
        fits=lambda value: isinstance(value, str) and bool(re.search(r"openalex\.org/W\d+$", value)),
        expr="${replace(value, 'https://openalex.org/', '')}",
    ),
    _Rule(
        field="title",
        names=(
            r"(.*/)?(title|article_title|brief_title|display_title)(/value|/title/value)?",
            r"(.*/)?(titles?/title|display_name|official_title|headline|citation_title|titles?|title_s)",
            r"(.*/)?(name|label|\w*title\w*)",
        ),
        fits=_text(3),
        apply=("text",),
        unlike=re.compile(r"short|sub_?title|journal|type|acronym|translated|author|creator|contributor|sponsor|interven"),
    ),
    _Rule(
        field="abstract",
        names=(r"(.*/)?abstract(_text|_s)?(/\w+)?", r"(.*/)?(summary|brief_summary|descriptions?(/description)?)",
               r"(.*/)?\w*(abstract|description)\w*"),
        fits=_text(60),
        apply=("abstract",),
    ),
    _Rule(field="abstract", names=(r"(.*/)?abstract_inverted_index",), fits=_is_inverted, apply=("uninvert",)),
    _Rule(
        field="container",
        names=(
            r"(.*/)?(container_title|journal_title|publication_name|journal(/(title|name|title_full))?|journal_title_s)",
            r"(.*/)?(journal_info/journal/title|source/display_name|venue|host_venue/display_name|dc/source|container/title)",
        ),
        fits=_text(2),
        apply=("text",),
        hosted=True,
        unlike=re.compile(r"issn|abbrev|id$|locations/"),
    ),
    _Rule(
        field="publisher",
        names=(r"(.*/)?(publisher|publisher(_name|/name)|journal/publisher|lead_sponsor/name|publisher_s)",),
        fits=_text(2),
        apply=("text",),
        hosted=True,
    ),
    _Rule(
        field="type",
        names=(r"(.*/)?(publication_types?|document_type|doc_type|resource_type_general|pub_type|work_type|publication_type_list/\w+)",
               r"(.*/)?(type|resource_type(/type)?|study_type|doc_type_s)", r"(.*/)?(types/\w+|subtype)"),
        fits=lambda value: isinstance(value, str) and 1 < len(value) < 40 and "/" not in value,
        unlike=re.compile(r"identifier|link|(isbn|issn)_type|contributor|author|creator"),
    ),
    _Rule(field="issued", names=_DATES, fits=_date, apply=("known_date",), type="DATE"),
    _Rule(
        field="language",
        names=(r"(.*/)?(language|lang|languages|language_s|language/\w+)",),
        fits=_cleans("language"),
        apply=("language",),
    ),
    _Rule(
        field="license",
        names=(r"(.*/)?licen[sc]e(s)?(/(url|id|type|name|value))?", r"(.*/)?(rights|rights_list/rights_identifier)"),
        fits=_text(2),
        apply=("license",),
        hosted=True,
    ),
    _Rule(
        field="oa_url",
        names=(r"(.*/)?(oa_url|pdf_url|full_?text_url|download_url|open_access_pdf/url|url_for_pdf|link/(pdf|application_pdf)/\w+)",),
        fits=_link,
        apply=("url",),
        hosted=True,
    ),
    _Rule(
        field="url",
        names=(r"(.*/)?(url|html_url|landing_page_url|web_url|link|links/(html|self_html|doi)|link/alternate/href|uri_s)",
               r"(.*/)?(identifier|links/self|link/href)"),
        fits=_link,
        apply=("url",),
        unlike=re.compile(r"license|orcid"),
    ),
    _Rule(field="retracted", names=(r"(.*/)?(is_)?retracted",), fits=lambda value: isinstance(value, bool)),
)  # fmt: skip
_AUTHORS = r"(.*/)?(authors?|creators?|authorships?|contributors?|author_list/author|authors/author|people)"
_INNER = (
    _Rule(field="given", names=(r"(.*/)?(given|given_names?|first_name|fore_?names?)(/value)?",), fits=_text(),
          apply=("text",)),
    _Rule(field="family", names=(r"(.*/)?(family|family_name|last_name|surname|key_?name)(/value)?",), fits=_text(),
          apply=("text",)),
    _Rule(field="name", names=(r"name|full_name|display_name|credit_name|literal|person_or_org/name|creator_name",
                               r"(author|person)/(name|display_name|full_name)|collective_name"), fits=_text(),
          apply=("text",)),
    _Rule(field="orcid", names=(r"(.*/)?\w*orcid\w*", r"(.*/)?(identifier|name_identifiers?\w*(/\w+)?)"),
          fits=_cleans("orcid"), apply=("orcid",)),
    _Rule(
        field="affiliation",
        names=(
            r"(.*/)?(raw_affiliation_strings?|affiliations?(/(name|affiliation))?|affiliation_info/affiliation)",
        ),
        fits=_text(2),
        apply=("text",),
    ),
)  # fmt: skip


def understand_places(places: Places) -> Fields:
    """What the places are good for."""
    work: dict[str, Choice] = {}
    for rule in _RULES:
        found = _best(rule, places.spots)
        if found is not None and rule.field not in work:
            work[rule.field] = found
    updated, changes = _update_field(places.spots)
    distinct = [spot for spot in places.spots if _identifies(spot)]
    return Fields(
        id=_identity(distinct),
        distinct=[spot.path for spot in distinct if not all(map(_date, spot.given_values))],
        updated=updated,
        changes=changes,
        deleted=_deletion_field(places.spots),
        work=list(work.values()),
        authors=_authors(places),
    )


def _best(rule: _Rule, spots: Iterable[Spot]) -> Choice | None:
    ranked: list[tuple[float, Spot]] = []
    for spot in spots:
        rank = next((n for n, name in enumerate(rule.names) if re.fullmatch(name, spot.trail)), None)
        given = spot.given_values
        least = MIN_MATCHING_DATE_SHARE if rule.type == "DATE" else MIN_MATCHING_SHARE
        if rank is None or not given or sum(map(rule.fits, given)) < least * len(given):
            continue
        if _ELSEWHERE.search(spot.trail) and not (rule.hosted or rule.field == "abstract"):
            continue
        if rule.unlike is not None and rule.unlike.search(spot.trail):
            continue
        away = 40 if not rule.hosted and _HOST.match(spot.trail) else 0
        cover = len(given) / max(len(spot.values), 1)
        ranked.append((20 * cover - 30 * rank - 2 * len(spot.names) - away, spot))
    if not ranked:
        return None
    ranked.sort(key=lambda one: -one[0])
    first = ranked[0][1]
    others = [spot.path for _, spot in ranked[1:4]]
    return Choice(
        field=rule.field,
        path=first.path,
        apply=rule.apply,
        type=rule.type,
        expr=rule.expr,
        values=first.given_values[:3],
        others=others,
    )


def _identifies(spot: Spot) -> bool:
    """Whether every record has a value here, and no two the same."""
    given = spot.given_values
    whole = len(given) == len(spot.values) and all(isinstance(value, str | int) for value in given)
    if not whole or spot.many or len({str(value) for value in given}) != len(given):
        return False
    return not any(isinstance(value, bool) or len(str(value)) > 300 or " " in str(value).strip() for value in given)


def _identity(distinct: Iterable[Spot]) -> Choice | None:
    """Of the places that identify a record, the shortest way to something that is called an id."""
    ranked: list[tuple[float, Spot]] = []
    for spot in distinct:
        last = spot.names[-1]
        called = (
            40 if re.fullmatch(r"id|identifier|uid|key|doi|pmid|nct_id|paper_id|put_code|halid_s|docid", last)
            else 25 if re.fullmatch(r"\w*_(id|key|identifier)|\w*id|path|uri", last)
            else 0
        )  # fmt: skip
        if called and not _ELSEWHERE.search(spot.trail):
            away = 30 if _HOST.match(spot.trail) else 0
            ranked.append((called - 4 * len(spot.names) - away, spot))
    if not ranked:
        return None
    ranked.sort(key=lambda one: -one[0])
    first = ranked[0][1]
    return Choice(
        field="id", path=first.path, values=first.given_values[:3], others=[spot.path for _, spot in ranked[1:4]]
    )


def _update_field(spots: Sequence[Spot]) -> tuple[Choice | None, bool]:
    whole = [spot for spot in spots if not isinstance(next(iter(spot.given_values), None), list | dict)]
    change = _best(_Rule(field="updated", names=_UPDATED, fits=_exact), whole)
    if change is not None:
        return change, True
    return _best(_Rule(field="updated", names=(*_DATES, r".*"), fits=_date), whole), False


def _deletion_field(spots: Sequence[Spot]) -> Choice | None:
    for spot in spots:
        if re.fullmatch(r"(.*/)?(is_)?deleted|header/status", spot.trail):
            return Choice(field="deleted", path=spot.path, values=spot.given_values[:3])
    return None


def _authors(places: Places) -> Authors | None:
    groups = [group for group in places.groups if re.fullmatch(_AUTHORS, group.trail)]
    groups = [group for group in groups if not _ELSEWHERE.search(group.trail)]
    for group in sorted(
        groups, key=lambda one: (len(one.names), "author" not in one.trail and "creator" not in one.trail)
    ):
        if group.texts:
            return Authors(each=group.each, turned=_are_turned(group.texts))
        inner = {rule.field: found for rule in _INNER if (found := _best(rule, group.inner)) is not None}
        if "name" in inner or "family" in inner:
            turned = "family" not in inner and _are_turned([str(value) for value in inner["name"].values])
            return Authors(each=group.each, inner=inner, turned=turned)
    for spot in places.spots:
        texts = [value for value in spot.given_values if isinstance(value, str)]
        if texts and re.fullmatch(r"(.*/)?(authors?|author_string|author_names?|creators?)", spot.trail):
            together = " ".join(texts)
            return Authors(path=spot.path, separator="; " if ";" in together else ", ")
    return None


def _are_turned(texts: Sequence[str]) -> bool:
    return sum(1 for text in texts if re.fullmatch(r"[^,]{2,60},\s*[^,]{1,60}", text)) > 0.5 * len(texts)
