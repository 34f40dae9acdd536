"""Patterns of the words around people: pronouns, kinship, appositions (C§2.3)."""

# ruff: noqa: E501  patterns read better unbroken

import re

GENERIC = frozenset({"girl", "boy", "woman", "man", "child", "old man", "old woman"})
GENERIC_WORDS = frozenset(
    "woman man girl boy child old-man old-woman 女人 男人 女孩 男孩 孩子 老人 老太太 小姑娘".split()  # noqa: SIM905
)
PRONOUN_EN = re.compile(r"\b(she|he|him|hers|herself|himself|her|his|they)\b", re.IGNORECASE)
POSSESSED = re.compile(
    r"\s+(?!(?:in|on|at|to|through|by|with|from|into|over|under|and|but|for|as|when|while|that|again|away|home|back|up|"
    r"down|out|off|across|along|about|how|what|if|the|an?|his|her|some|until|because|before|after|towards?)\b)[a-z]"
)
OWN_PLACE = re.compile(
    r"\s+([a-z]+)(?=\s*[,.;:!?]|\s+(?:in|on|at|by|with|and|near|next|behind|under|beside|stood|was|had|has|is|lay)\b|$)"
)
TO_ZH = "给对向把跟和问教叫让陪送帮等扶背抱拉带劝请看"  # of another one
OWN_PLACE_ZH = re.compile(r"的[^，。]{0,2}?(?:院子|房间|屋|家|店|铺|床|坟|墓|办公室|菜园|田|地里|船)")
HIS_NAME = re.compile(r"\b(?:[Hh]is|[Hh]er) name (?:was|is) $")
ELDERS = frozenset({"old-man", "old-woman", "老人", "老太太", "老者", "老头", "老汉", "老人家", "老妇人"})
CALLED_BOY = re.compile(r"\b[Tt]he (?:little |young |small )?boy\b|男孩")
CALLED_GIRL = re.compile(r"\b[Tt]he (?:little |young |small )?girl\b|女孩|小姑娘")
IT_WAS = re.compile(r"\b[Ii]t (?:was|is) (?:only |just )?$|(?:那是|原来是|正是|就是)$")
GRANDCHILD_EN = re.compile(r"\b(?:his|her) (?:\w+ )?grand(?:son|daughter|child)", re.IGNORECASE)
GRANDCHILD_ZH = re.compile(r"(?<!是[他她]的)(?:孙子|孙女|外孙)")
OWNERS = frozenset({"his", "her", "my", "our", "their", "your"})
KIN_ZH = frozenset(
    "母亲 妈妈 父亲 爸爸 妻子 丈夫 儿子 女儿 孙子 孙女 姐姐 妹妹 哥哥 弟弟 外婆 奶奶 爷爷 外公 姥姥 姑姑 舅舅".split()  # noqa: SIM905
)
TITLES_AFTER_ZH = frozenset(
    "奶奶 爷爷 婆婆 阿姨 叔叔 大妈 大爷 大娘 伯伯 大伯 大姐 大哥 大叔 大婶 老人 老师 医生 师傅 教授 校长 先生 女士 小姐 主任 经理 队长 船长 警官 护士 记者 馆长 院长 大夫".split()  # noqa: SIM905
)
"""What a full name may have behind it: 陈秀兰奶奶; 小明奶奶 is the grandmother of someone."""

KIN_BEFORE = re.compile(
    r"\b(his|her|their|my|our) (?:\w+ )?(?:sister|brother|mother|father|aunt|uncle|cousin|son|daughter|husband|"
    r"wife|niece|nephew|friend|grandfather|grandmother) $"
)
BESIDE = re.compile(r"\b(?:beside|behind|around|before|over|under|near|above|below|of|to|in|on|from|for)\s+$")
OF_ROLE = re.compile(
    r"\b(?!front|care|out|ahead|instead|group|crowd|row|line|one|two|three|each|most|some|all)[a-z]+ of (?:the |his |her |their )?$"
)
NEW_EN = re.compile(r"\b(an?|another)\s+[a-z]+\s+$", re.IGNORECASE)
IS_EN = re.compile(
    r"\b(?:was|is|be|become|becomes|became|been|worked as)\s+(?:also |still |now )?(?:an?|the)\s+(?:[a-z]+\s+){0,2}$"
)
IS_ZH = re.compile(r"(?:是|当了?|成了|成为|做了)(?:一[个名位]|个|名)?[^，。]{0,2}$")
AS_A = re.compile(r"\b[Aa]s an?\s+(?:[a-z]+\s+)?$")
CHILD_OF = re.compile(
    r"\b(?:son|daughter|child|wife|widow|sister|brother|grandson|granddaughter) of an?\s+(?:[a-z-]+\s+){0,2}$"
)
CLAUSE_AFTER = re.compile(r",\s+(?:an?|the)\s+(?:[a-z-]+\s+){0,2}$")
ROLE_TWICE = re.compile(r"\b([a-z]+),\s+an?\s+(?:[a-z-]+\s+){0,2}$")
ROLE_AFTER = re.compile(
    r"\b([A-ZÀ-Þ][a-zß-ÿ]+(?: [A-ZÀ-Þ][a-zß-ÿ]+)?),\s+(?:an?|the|his|her|their|my|our)\s+(?:[A-Za-z'’-]+\s+){0,3}$"
)
