"""Claims on the place and the things of a shot (C§2.3)."""

# ruff: noqa: E501  patterns read better unbroken

import re
from collections.abc import Collection, Sequence

from patra.studio.script.cast.ages import is_life
from patra.studio.script.cast.presence import unreported_part
from patra.studio.script.certainty.claims import Claim
from patra.studio.script.certainty.elsewhere import (
    against_carried,
    against_stated,
    is_confirmed,
    names_a_place,
    other_side,
)
from patra.studio.script.certainty.exact import is_exact
from patra.studio.script.depiction import here_part, without_speech
from patra.studio.script.dialogue import Reading
from patra.studio.script.lexicon import named_places
from patra.studio.script.pictograms import pictogram_of_motif
from patra.studio.script.scenes import Beat
from patra.studio.script.shots import Shot
from patra.studio.script.signs import OUTDOORS

_SOMEWHERE_EN = re.compile(
    r"\b(?:in|into|inside|at|on|under|behind|beside|onto|through|across|up|down|against|below|above) (?:the|a|an|his|her|their|its|my|our|one) (?!(?:morning|evening|night|afternoon|end|moment|same|first|last|next|day|war|age|way|whole|back|dark|rain|wind|sun|name|voice|hand|hands|arms?|head|eyes?|mind|coin|letter|book|silence|time|week|year|month|hour|minute|second)\b)[a-z]+"
)
_SOMEWHERE_ZH = re.compile(
    r"[在到进向往](?!了)[\u4e00-\u9fff]{1,7}(?:[里上中下内外前后边旁]|门口)|(?:爬上|走进|来到|站在|坐在|回到|住在)[\u4e00-\u9fff]{2}"
)
_NOT = re.compile(
    r"\b(?:never|not|no|refus\w+|avoid|without|nor|n't|cannot)\b[^,.;]{0,40}$|n[’']t\b[^,.;]{0,40}$|(?:避免|切勿|别|不要|不能|不用|不会|别|没有|没|无|不)[^，。；]{0,5}$",
    re.IGNORECASE,
)


def place_claims(shot: Shot, beats: Sequence[Beat], before: Sequence[Beat], reading: Reading) -> list[Claim]:
    """Claims on where it is; also that nothing was said of it."""
    picture, language = shot.picture, reading.language
    told = " ".join(unreported_part(here_part(reading.narration_of(b.sentence), language), language) for b in beats)
    whole = " ".join(without_speech(b.sentence.text) for b in beats)
    claims: list[Claim] = []
    if not picture.place and not picture.sign:
        lost = (_SOMEWHERE_ZH if language == "zh" else _SOMEWHERE_EN).search(told)
        names = (*reading.people.names, *reading.people.aliases)
        unknown = lost is not None or names_a_place(told, language, names)
        evidence = "place_not_found" if unknown else "place_unsaid"
        return [Claim(about="place", subject=lost[0] if lost else "", evidence=evidence)]
    where = picture.sign or picture.place
    stated = any(picture.place in b.tags.places or (picture.sign and b.tags.places) for b in beats)
    if stated:
        here = {word for _, word in named_places(told, language)}
        there = {word for _, word in named_places(whole, language)}
        words = {word for b in beats for word in b.tags.place_words}
        only = bool(words) and not any(word in told for word in words) and not (here & there)
        claims.append(
            Claim(
                about="place",
                subject=where,
                evidence=_stated_evidence(told, words, only=only, life=is_life(reading.text)),
            )
        )
        names = (*reading.people.names, *reading.people.aliases)
        if picture.sign and picture.place and not any(picture.sign in (word, told) for word in words):
            claims.append(Claim(about="place", subject=where, evidence="place_alike"))  # the sign of the place before
        if told.rstrip(' ”"').endswith(("?", "？")):
            claims.append(Claim(about="place", subject=where, evidence="place_only_told"))
        if against := against_stated(told, words, picture.place, language, names, inside=beats[-1].setting.inside):
            claims.append(Claim(about="place", subject=where, evidence=against))
        inside = beats[-1].setting.inside
        if picture.figures and not inside and other_side(told, language, inside=inside):
            claims.append(Claim(about="place", subject=where, evidence="place_other_side"))
    else:
        claims.append(
            Claim(
                about="place",
                subject=where,
                evidence=_carried_evidence(shot, told, beats, before, reading),
            )
        )
        if _leaves(told, language):
            claims.append(Claim(about="place", subject=where, evidence="place_beside"))
    others = [
        word
        for tag, word in named_places(told, language)
        if tag != picture.place
        and not _near(tag, picture.place)
        and word != picture.sign
        and len(word) > (language == "zh")
    ]
    claims += [Claim(about="place", subject=word, evidence="other_place") for word in others[:1]]
    if not picture.figures and not picture.crowd and not stated:
        claims.append(Claim(about="place", subject=where, evidence="place_of_many"))
    return claims


_TOGETHER = (
    frozenset({"sea", "harbour", "island"}),
    frozenset({"village", "street", "road", "city", "garden"}),
    frozenset({"mountain", "forest", "road", "field", "temple", "village"}),
    frozenset({"river", "city", "village", "field"}),
)
"""Places of which one picture shows several."""


_LIVES = re.compile(r"\b(?:lived|lives|grew up|was born)\b|住在|生活在|长大")
_AS_PEOPLE = re.compile(
    r"\b(?:city|town|village|island|school|hospital|museum|factory|railway compan(?:y|ies))(?: of [A-Z]\w+)? (?:has|have|had|will|said|says|plans?|hired|wants?|announced|decided|refused|paid|printed)\b|(?:学校|医院|工厂|博物馆|公司)(?:表示|说|决定|计划|宣布|认为)"
)


def _is_passed(told: str, word: str) -> bool:
    """Whether a place is only passed, looked at or on someone's way."""
    name = re.escape(word.replace("-", " "))
    return (
        re.search(
            rf"\b(?:past|towards?|beyond|looked at|looked out at|bus to|train to) (?:the |a |an )?(?:\w+ )?{name}|(?:经过|路过|望着|朝着?|看着|通往|开往)[^，。]{{0,4}}{name}",
            told,
        )
        is not None
    )


def _near(place: str, other: str) -> bool:
    return any({place, other} <= together for together in _TOGETHER)


def _stated_evidence(told: str, words: Collection[str], *, only: bool, life: bool) -> str:
    if only:
        return "place_only_told"
    if _AS_PEOPLE.search(told):
        return "place_as_people"
    if any(_is_passed(told, word) for word in words):
        return "place_passed"
    if _LIVES.search(told):
        return "place_of_living"
    return "place_in_life" if life else "place_here"


def _leaves(told: str, language: str) -> bool:
    """Whether a sentence that does not name the place where it is says where someone is."""
    return (_SOMEWHERE_ZH if language == "zh" else _SOMEWHERE_EN).search(told) is not None


LASTS = 2  # sentences for which a place is certain that only one before them states


def _carried_evidence(shot: Shot, told: str, beats: Sequence[Beat], before: Sequence[Beat], reading: Reading) -> str:
    """The evidence for a place that no sentence of the shot states: certain right behind the one that does."""
    picture, language = shot.picture, reading.language
    place, sign = picture.place, picture.sign
    if sign in OUTDOORS.values():
        return "place_implied"
    peopled = bool(picture.figures)
    names = (*reading.people.names, *reading.people.aliases)
    inside = beats[-1].setting.inside
    confirmed = is_confirmed(told, place, language)
    if against := against_carried(told, language, names, inside=inside, peopled=peopled or confirmed):
        return against
    paragraph = beats[0].sentence.paragraph
    for back, beat in enumerate(reversed(before), 1):
        said = reading.narration_of(beat.sentence)
        if (place and place in beat.tags.places) or (sign and sign in beat.tags.place_words):
            if _LIVES.search(beat.sentence.text):
                return "place_implied"
            if any(_is_passed(said, word) for word in beat.tags.place_words):
                return "place_far"
            if against := against_stated(said, beat.tags.place_words, place, language, names, inside=inside):
                return against
            if beat.sentence.paragraph == paragraph and back <= LASTS:
                return "place_paragraph"
            if confirmed:
                return "place_confirmed"
            return "place_before" if back <= LASTS else "place_far"
        if against := against_carried(said, language, names, inside=inside, peopled=True):
            return against  # someone went away in between
    return "place_implied"


NOT_PAINTED = frozenset({"ferry"})  # what our own drawing of the motif is not: it has sails
CLOTHES = frozenset(
    [
        "shoe-print",
        "hat-fedora",
        "tshirt-crew",
        "fa:mitten",
        "fa:socks",
        "fa:vest",
        "fa:shirt",
        "fa:hat-cowboy",
        "fa:helmet-safety",
        "fa:hat-wizard",
    ]
)
_COLOURED = re.compile(
    r"\b(?:red|yellow|green|blue|white|black|brown|grey|gray|pink|purple|orange|golden|silver) $|[红黄绿蓝白黑灰粉紫褐棕橙][色的]{0,2}$",
    re.IGNORECASE,
)


_BOATS = frozenset({"boat", "ferry", "fa:ship"})
_ROWS = re.compile(
    r"\b(?:rowed|rowing|rower|rows? (?:the|a|his|her|us|me|out|across|over|back)|oars?|oarsm[ae]n|paddled|paddling)\b|划[着了]?(?:小|木|渔|渡)?船|[划摇撑]着?(?:船|桨|橹|篙)|船桨|桨声|摇橹|撑篙",
    re.IGNORECASE,
)
_SAILS = re.compile(
    r"\b(?:sail(?:s|ed|ing|boat)?|mast|steam\w*|engines?|motor\w*|funnel|diesel)\b|帆|桅|汽笛|马达|发动机|轮船|汽船|机船",
    re.IGNORECASE,
)
_SAILS_SET = re.compile(r"\b(?:sails?|masts?|sailing ship|sailboat|schooner|brig)\b|帆|桅", re.IGNORECASE)
_SOUNDING = frozenset({"dog", "cat", "horse", "bird", "bell", "train"})
_OUT_OF_SIGHT = re.compile(
    r"\b(?:somewhere|far (?:away|off)|in the distance|distant|from afar|out of sight|unseen)\b|\b(?:heard|hear|sound of|listened to) [^,.;]*$|远处|远方|不知(?:哪里|哪儿|何处)|隐隐|隐约|传来|听[见到]",
    re.IGNORECASE,
)
_SOUNDS = re.compile(
    r"\b(?:bark|howl|hoot|crow|croak|neigh|whinn|bray|bleat|moo|meow|mew|caw|screech|chirp|sing|sang|call|cr[iy]|whistl|toll|chim|rang|ring|rumbl)\w*|\b(?:heard|hear|sound of|listened to)\b|叫|吠|鸣|啼|嚎|响|声",
    re.IGNORECASE,
)


def _is_rowed(name: str, word: str, text: str) -> bool:
    """Whether the boat of a chapter is rowed: what our pictograms draw of boats has sails or a funnel."""
    return name in _BOATS and not _SAILS.search(f"{word} {text}") and _ROWS.search(text) is not None


_SHIPS = re.compile(
    r"\b(?:ferry|ferries|steamers?|steamships?|liners?|trawlers?|freighters?|tankers?|ships?|motorboats?)\b|渡轮|轮船|货轮|客轮|游轮|汽船|军舰|航线|班船",
    re.IGNORECASE,
)


def _is_shipped(name: str, word: str, text: str) -> bool:
    """Whether a boat that would be drawn with oars or sails is the ship of the chapter."""
    drawn = name == "boat" and pictogram_of_motif(name, word) not in {"ferry", "fa:ship"}
    return drawn and _SHIPS.search(text) is not None and not _ROWS.search(text) and not _SAILS_SET.search(text)


def _is_only_heard(name: str, word: str, shot: Shot) -> bool:
    """Whether an animal, a bell or a train is only heard in every sentence that names it."""
    naming = [sentence.text for sentence in shot.sentences if word and word.lower() in sentence.text.lower()]
    return (
        name in _SOUNDING and bool(naming) and all(_OUT_OF_SIGHT.search(one) and _SOUNDS.search(one) for one in naming)
    )


def thing_claims(shot: Shot, reading: Reading, *, scenic: bool) -> list[Claim]:
    """A claim for each motif and pictogram, by the word of the text that it stands for; a scene tells more than a card."""
    picture = shot.picture
    words = dict(picture.captions)
    claims: list[Claim] = []
    for name in dict.fromkeys([*picture.motifs, *picture.pictograms]):
        word = words.get(name, "")
        at = shot.narration.lower().find(word.lower()) if word else -1
        rowed = _is_rowed(name, word, reading.text) and not (scenic and picture.figures)
        if rowed or (_is_shipped(name, word, reading.text) and (picture.figures or not scenic)):
            evidence = "thing_other_kind"
        elif scenic and _is_only_heard(name, word, shot):
            evidence = "thing_heard"
        elif scenic and name in picture.motifs:
            evidence = "thing_by_sense" if pictogram_of_motif(name, word) in NOT_PAINTED else "thing_painted"
        elif at >= 0 and _NOT.search(shot.narration[:at]):
            evidence = "thing_denied"
        elif at >= 0 and name in CLOTHES and _COLOURED.search(shot.narration[:at]):
            evidence = "thing_coloured"
        else:
            evidence = "thing_exact" if is_exact(word, shot.narration, reading.language) else "thing_by_sense"
        claims.append(Claim(about="thing", subject=name, evidence=evidence))
    return claims
