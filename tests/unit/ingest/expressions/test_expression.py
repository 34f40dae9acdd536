"""The sandbox of ch. 4.8: what expressions mean, and what hostile ones cannot do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.expressions.expression import MAX_DEPTH, MAX_LENGTH, Parser
from patra.ingest.expressions.functions import FUNCTIONS
from patra.ingest.expressions.template import compile_template, has_expression
from patra.ingest.expressions.values import Context, Env, Instant
from patra.ingest.vocabulary.codes import NullPolicy
from patra.kernel.clock import parse_instant
from patra.kernel.errors import Invalid

NAMES = {
    "window": frozenset({"from", "to"}),
    "page": frozenset({"token", "offset", "size"}),
    "params": frozenset({"term", "text"}),
    "ids": frozenset(),
    "record": None,
    "value": None,
}
START = parse_instant("2026-11-16T00:00:00Z")
VALUES = {
    "window": {"from": Instant(START), "to": Instant(START + 86_400_000_000)},
    "page": {"token": None, "offset": 5, "size": 100},
    "params": {"term": "cancer", "text": "a" * 1000},
    "ids": ["7", "8"],
    "record": {"a": {"b": [1, 2]}, "title": ["x"]},
    "value": "10.1000/ABC",
}
CONTEXT = Context(VALUES, Env(now=START))


def compiled(source, names=NAMES, allowed=None):
    """The expression as a closure over a context, and the names it reads."""
    parser = Parser(source, 0, names, allowed)
    evaluate = parser.expression()
    parser.end()
    return evaluate, frozenset(parser.read)


def value(source, context=CONTEXT):
    return compiled(source)[0](context)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 / 2", 3.5),
        ("6 / 2", 3),
        ("-page.offset", -5),
        ("7 % 4", 3),
        ("page.token == null ? 'first' : page.token", "first"),
        ("page.offset > 4 && !(page.size < 10)", True),
        ("1 in [1, 2] || false", True),
        ("1 == '1'", False),
        ("1 == 1.0", True),
        ("true == 1", False),
        ("'a' + 'b'", "ab"),
        ("ids[1]", "8"),
        ("ids[9]", None),
        ("record.a.b[1]", 2),
        ("record.nothing.there", None),
        ("record['title'][0]", "x"),
        ("join(ids, ',')", "7,8"),
        ("join(null, ',')", None),
        ("coalesce(page.token, params.term)", "cancer"),
        ("concat('a', null, 1)", "a1"),
        ("formatDateTime(window.to - duration('P1D'), 'yyyy/MM/dd')", "2026/11/16"),
        ("formatDateTime(now(), \"yyyy-MM-dd'T'HH:mm\", 'America/New_York')", "2026-11-15T19:00"),
        ("window.to - window.from == duration('P1D')", True),
        ("parseDateTime('2019-03') < window.from", True),
        ("jsonPath(record, '$.a.b[0]')", 1),
        ("jsonPaths(record, '$.a.b[*]')", [1, 2]),
        ("matches(value, '10\\\\.[0-9]+/.*')", True),
        ("urlParam('https://x.org/a?page%5Bcursor%5D=k1', 'page[cursor]')", "k1"),
        ("lower(value)", "10.1000/abc"),
        ("replace(value, '/', '%2F')", "10.1000%2FABC"),
        ("substring(value, 0, 2)", "10"),
        ("before(value, '/')", "10.1000"),
        ("after(value, ':')", None),
        ("split('a;b', ';')", ["a", "b"]),
        ("distinct(['b', 'a', 'b'])", ["b", "a"]),
        ("lists(['a'], null, ['b', 'a'])", ["a", "b", "a"]),
        ("lists(null, [])", None),
        ("lists(['a'], 'b')", ["a", "b"]),
        ("length(ids) + length('abc')", 5),
        ("number('12') + 1", 13),
        ("number('x')", None),
        ("padLeft('7', 3, '0')", "007"),
        ("min(3, 1, 2) + max(1, 2)", 3),
        ("floor(2.7) + ceil(2.1)", 5),
        ("base64('a') + sha256('a')", "YQ==ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"),
        ("json({})" if False else "json(ids)", '["7","8"]'),
        ("startsWith(value, '10.') && endsWith(value, 'C') && contains(value, '/')", True),
        ("first(ids) + last(ids)", "78"),
        ("trim('  ')", None),
        ("urlEncode('a b/c')", "a%20b%2Fc"),
        ("upper('é')", "É"),
        ("text(1.0)", "1"),
    ],
)
def test_an_expression_means_what_it_says(source, expected):
    assert value(source) == expected


def test_every_function_of_the_whitelist_is_tried_above():
    tried = test_an_expression_means_what_it_says.pytestmark[0].args[1]
    assert not [name for name in FUNCTIONS if not any(f"{name}(" in source for source, _ in tried)]


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("page.offst", "page.offset"),
        ("wndow.from", "window"),
        ("coalese(1)", "coalesce"),
        ("params.trm", "params.term"),
    ],
)
def test_a_typo_is_found_when_it_is_compiled_and_the_right_name_is_offered(source, hint):
    with pytest.raises(Invalid) as raised:
        compiled(source)
    assert raised.value.code == "expr_invalid"
    assert hint in raised.value.advice


HOSTILE = [
    "page.__class__",
    "ids.__class__.__mro__",
    "''.__class__",
    "'a'.format(record)",
    "().__class__.__bases__[0].__subclasses__()",
    "__import__('os')",
    "eval('1')",
    "open('/etc/passwd')",
    "now.__globals__",
    "record.__init__()",
    "lambda: 1",
    "[x for x in ids]",
    "1 if true else 2",
    "9 ** 9 ** 9",
    "10 << 100",
    "a = 1",
    "a; b",
    "`id`",
    "${1}",
    "{{7*7}}",
    "#{7*7}",
    "1 +",
    "(1",
    "'open",
    "'bad \\x escape'",
    "9999999999999999999999",
    "matches('a', params.term)",
    "matches('a', '(a+')",
    "jsonPath(record, params.term)",
    "jsonPath(record, '$..*..*..*..*')",
    "now(1)",
    "coalesce()",
    "\x00",
    "ids[",
    "window",
    "params",
    "page.offset.bit_length",
]


@pytest.mark.parametrize("source", HOSTILE)
def test_hostile_expressions_do_not_compile(source):
    with pytest.raises(Invalid):
        compiled(source)


GREEDY = [
    "999999999999999999 * 999999999999999999",
    "999999999999999999 * 10",
    "1 / 0",
    "1 % 0",
    "'a' * 1000000000",
    "params.text * 3",
    "replace(params.text, 'a', params.text)",
    "padLeft('a', 1000000, 'x')",
    "join(split(replace(params.text, 'a', 'b,'), ','), params.text)",
    "replace('aaa', '', 'b')",
    "'a' < 1",
    "null + 1",
    "-'a'",
    "window.from + window.to",
    "duration('P1Y')",
    "duration('x')",
    "formatDateTime('2019', 'yyyy')",
    "formatDateTime(now(), 'nonsense')",
    "formatDateTime(now(), 'yyyy', 'Mars/Olympus')",
    "1 in 'abc'",
    "length(1)",
    "ids['a']",
    "ids[true]",
    "urlParam('http://[bad', 'a')",
    "substring('a', 99999999999999, 1)",
    "join(ids, 1) + 2",
]


@pytest.mark.parametrize("source", GREEDY)
def test_expressions_that_grow_or_make_no_sense_end_with_a_reason(source):
    with pytest.raises(Invalid) as raised:
        value(source, Context(VALUES, Env(now=START, max_text=4096)))
    assert raised.value.code in {
        "expr_failed",
        "duration_not_fixed",
        "duration_invalid",
        "format_invalid",
        "zone_unknown",
    }


def test_named_expressions_that_double_each_other_end_at_the_bound():
    context = Context({"value": "x" * 60_000}, Env())
    with pytest.raises(Invalid, match="bound"):
        compile_template("${value + value}", {"value": None}).value(context)


@pytest.mark.parametrize(
    "source",
    [
        "(" * 2000 + "1" + ")" * 2000,
        "-" * 3000 + "1",
        "!" * 3000 + "true",
        "[" * 500 + "]" * 500,
        "1" + "+1" * 2000,
        "x" * (MAX_LENGTH + 1),
    ],
)
def test_depth_length_and_parts_are_bounded(source):
    with pytest.raises(Invalid):
        compiled(source)


def test_nesting_up_to_the_bound_is_fine():
    depth = MAX_DEPTH - 2
    assert value("(" * depth + "1" + ")" * depth) == 1


@given(st.text(max_size=60))
def test_any_text_compiles_or_is_refused_and_nothing_else_happens(source):
    try:
        evaluate, _ = compiled(source)
    except Invalid:
        return
    try:
        evaluate(CONTEXT)
    except Invalid:
        return


ALPHABET = st.sampled_from(
    [
        "ids",
        "record",
        "value",
        "page.offset",
        "1",
        "'a'",
        "null",
        "+",
        "-",
        "*",
        "/",
        "(",
        ")",
        "[",
        "]",
        ",",
        "?",
        ":",
        "==",
        "<",
        "join(",
        "coalesce(",
        "first(",
        "length(",
        "json(",
    ]
)


@given(st.lists(ALPHABET, max_size=14).map(" ".join))
def test_any_sequence_of_known_words_is_evaluated_or_refused(source):
    try:
        value(source)
    except Invalid:
        return


def test_only_listed_functions_may_be_called():
    assert compiled("lower(value)", NAMES, ["lower"])[0](CONTEXT) == "10.1000/abc"
    with pytest.raises(Invalid, match="allowedFunctions"):
        compiled("upper(value)", NAMES, ["lower"])


class TestTemplates:
    def test_a_single_expression_keeps_its_type(self):
        assert compile_template("${ids}", NAMES).value(CONTEXT) == ["7", "8"]

    def test_several_parts_give_text(self):
        assert compile_template("a ${page.offset} b ${value}", NAMES).value(CONTEXT) == "a 5 b 10.1000/ABC"

    def test_one_part_without_a_value_leaves_the_whole_without_one(self):
        template = compile_template("token:${page.token}", NAMES)
        assert template.text(CONTEXT, NullPolicy.OMIT) is None
        assert template.text(CONTEXT, NullPolicy.EMPTY) == ""
        with pytest.raises(Invalid, match="nullPolicy is fail"):
            template.text(CONTEXT, NullPolicy.FAIL)

    def test_braces_in_texts_and_escapes_are_no_ends(self):
        assert compile_template("${'}'}$${x}", NAMES).value(CONTEXT) == "}${x}"

    def test_what_a_value_holds_is_never_read_as_an_expression(self):
        context = Context({"value": "${page.offset}"}, Env())
        assert compile_template("a${value}", NAMES).value(context) == "a${page.offset}"

    @pytest.mark.parametrize("source", ["${", "${1", "${}", "${1 2}", "a ${page.nope} b"])
    def test_broken_templates_are_refused(self, source):
        with pytest.raises(Invalid):
            compile_template(source, NAMES)

    def test_a_list_in_a_text_is_refused(self):
        with pytest.raises(Invalid, match="join"):
            compile_template("a${ids}", NAMES).value(CONTEXT)

    def test_a_literal_has_no_expression(self):
        assert not has_expression("$.title[0]")
        assert not has_expression("$${x}")
        assert has_expression("${x}")
