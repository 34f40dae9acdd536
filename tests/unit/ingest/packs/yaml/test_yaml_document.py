"""Reading a pack: every problem at once, each with file, line, path and advice."""

import time

import pytest

from patra.ingest.packs.problems import Source
from patra.ingest.packs.schema import Pack, Sections
from patra.ingest.packs.yaml.yaml_document import MAX_PROBLEMS, read_document, read_value
from patra.ingest.vocabulary.reasons import Reason
from tests.unit.ingest.sample_packs import KINDS, document_of, text_of

HEAD = "pack: 1\nsource: x\nversion: 1.0\ntitle: X\nendpoints:\n  a: {}\n"


def only(text):
    problems = document_of(text).problems
    assert len(problems) == 1, [str(p) for p in problems]
    return problems[0]


@pytest.mark.parametrize("name", KINDS)
def test_the_packs_of_every_kind_are_read_without_a_problem(name):
    assert document_of(text_of(name)).problems == ()


def test_all_problems_of_a_file_are_found_at_once():
    text = HEAD + (
        "bogus: 3\n"
        "credentials: {k: {type: API_KEY, secrets: {apiKey: sesame}}}\n"
        "defaults:\n"
        "  retry: {maxAttempts: 99, baseDelay: 5s}\n"
        "  http: {method: FETCH}\n"
        "schedules: {s: {endpoint: a, operation: HARVEST, cron: '61 * * * *'}}\n"
    )
    found = {(p.line, p.code, p.path) for p in document_of(text).problems}
    assert found == {
        (7, Reason.PACK_UNKNOWN_FIELD, "bogus"),
        (8, Reason.PACK_BAD_SECRET, "credentials.k.secrets.apiKey"),
        (10, Reason.PACK_OUT_OF_BOUNDS, "defaults.retry.maxAttempts"),
        (10, Reason.PACK_BAD_DURATION, "defaults.retry.baseDelay"),
        (11, Reason.CODE_UNKNOWN, "defaults.http.method"),
        (12, Reason.PACK_BAD_FORMAT, "schedules.s.cron"),
    }


@pytest.mark.parametrize(
    ("text", "code", "line", "path", "advice"),
    [
        ("", Reason.PACK_UNREADABLE, 0, "", ""),
        ("a: [", Reason.PACK_UNREADABLE, 1, "", ""),
        ("\ta: 1", Reason.PACK_UNREADABLE, 1, "", ""),
        ("just text", Reason.PACK_WRONG_TYPE, 1, "", ""),
        (HEAD + "title: Y\n", Reason.PACK_DUPLICATE_KEY, 7, "title", "remove"),
        (HEAD.replace("title: X\n", ""), Reason.PACK_MISSING_FIELD, 1, "", "title"),
        (HEAD.replace("source: x", "source: 'a b'"), Reason.PACK_BAD_NAME, 2, "source", "letters"),
        (HEAD.replace("  a: {}", "  a: {role: SEARH}"), Reason.CODE_UNKNOWN, 6, "endpoints.a.role", "SEARCH"),
        (
            HEAD.replace("  a: {}", "  a: {pagination: {pagesize: 3}}"),
            Reason.PACK_UNKNOWN_FIELD,
            6,
            "endpoints.a.pagination.pagesize",
            "pageSize",
        ),
        (
            HEAD.replace("  a: {}", "  a: {pagination: {pageSize: many}}"),
            Reason.PACK_WRONG_TYPE,
            6,
            "endpoints.a.pagination.pageSize",
            "",
        ),
        (
            HEAD.replace("  a: {}", "  a: {pagination: {base1: yes}}"),
            Reason.PACK_WRONG_TYPE,
            6,
            "endpoints.a.pagination.base1",
            "",
        ),
        (
            HEAD.replace("  a: {}", "  a: {expr: {allowedFunctions: [xyzzy]}}"),
            Reason.PACK_UNKNOWN_FUNCTION,
            6,
            "endpoints.a.expr.allowedFunctions[0]",
            "known",
        ),
        (
            HEAD.replace("  a: {}", "  a: {output: {fields: {t: {path: $.a, apply: [txt]}}}}"),
            Reason.PACK_UNKNOWN_FUNCTION,
            6,
            "endpoints.a.output.fields.t.apply[0]",
            "text",
        ),
        (
            HEAD.replace("  a: {}", "  a: {params: {q: {pattern: '(a'}}}"),
            Reason.PACK_BAD_PATTERN,
            6,
            "endpoints.a.params.q.pattern",
            "",
        ),
        (
            HEAD.replace("  a: {}", "  a: {response: {updatedAtFormat: [YYYY]}}"),
            Reason.PACK_BAD_FORMAT,
            6,
            "endpoints.a.response.updatedAtFormat[0]",
            "",
        ),
        (HEAD + "hosts: ['https://x.org/a']\n", Reason.HOST_INVALID, 7, "hosts[0]", "without scheme"),
        (HEAD.replace("  a: {}", "  a: {http: []}"), Reason.PACK_WRONG_TYPE, 6, "endpoints.a.http", ""),
        (
            HEAD.replace("  a: {}", "  a: {response: {itemsPath: {}}}"),
            Reason.PACK_WRONG_TYPE,
            6,
            "endpoints.a.response.itemsPath",
            "",
        ),
        (HEAD.replace("pack: 1", "pack: 2"), Reason.PACK_WRONG_TYPE, 1, "pack", ""),
    ],
)
def test_a_problem_names_its_line_its_path_and_what_to_do(text, code, line, path, advice):
    problem = only(text)
    assert (problem.code, problem.line, problem.path) == (code, line, path)
    assert problem.file == "pack.yaml"
    assert advice in problem.advice


def test_scalars_are_read_by_what_the_field_wants():
    tree = document_of(
        HEAD.replace("  a: {}", "  a: {http: {queryTemplate: {rows: 100, on: no, v: 1.10}}, supports: [harvest]}")
    ).tree
    assert tree["version"] == "1.0"
    assert tree["endpoints"]["a"]["http"]["queryTemplate"] == {"rows": "100", "on": "no", "v": "1.10"}
    assert tree["endpoints"]["a"]["supports"] == ["HARVEST"]


def test_other_spellings_of_a_code_become_the_code():
    tree = document_of(HEAD.replace("  a: {}", "  a: {pagination: {type: cursor}, window: {align: minute}}")).tree
    assert tree["endpoints"]["a"]["pagination"]["type"] == "TOKEN"
    assert tree["endpoints"]["a"]["window"]["align"] == "min"


def test_anchors_and_merges_work_and_a_problem_inside_names_the_line_where_it_stands():
    text = HEAD.replace(
        "  a: {}", "  a: {http: &h {method: GET, connectTimeoutMs: 5}}\n  b: {http: {<<: *h, method: POST}}"
    )
    tree = document_of(text).tree
    assert tree["endpoints"]["b"]["http"] == {"method": "POST", "connectTimeoutMs": 5}


def test_bombs_of_anchors_end():
    listed = "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(9))
    merged = "".join(f"m{i + 1}: &m{i + 1} {{<<: [{','.join([f'*m{i}'] * 9)}]}}\n" for i in range(12))
    begun = time.process_time()
    for text in (
        HEAD.replace("  a: {}", "  a: {http: {bodyTemplate: {kind: JSON, json: *j}}}") + "a: &a [x,x,x]\n" + listed,
        "defaults: &a [x,x,x]\n" + listed + HEAD.replace("  a: {}", "  a: {http: {bodyTemplate: {json: *j}}}"),
        "m0: &m0 {k: v}\n" + merged + HEAD.replace("  a: {}", "  a: {http: {bodyTemplate: {json: *m12}}}"),
    ):
        assert document_of(text).problems
    assert time.process_time() - begun < 30


def test_deep_and_large_files_are_refused():
    assert (
        only(HEAD.replace("  a: {}", "  a: {http: {bodyTemplate: {json: " + "[" * 60 + "]" * 60 + "}}}")).code
        is Reason.PACK_UNREADABLE
    )
    assert only("a: " + "[" * 5000).code is Reason.PACK_UNREADABLE
    assert only("#" * 1_100_000).code is Reason.PACK_UNREADABLE


def test_a_null_takes_away_and_an_empty_section_says_nothing():
    tree = document_of(HEAD.replace("  a: {}", "  a:\n    http:\n      queryTemplate: {x: null}\n    retry:\n")).tree
    assert tree["endpoints"]["a"] == {"http": {"queryTemplate": {"x": None}}, "retry": {}}


def test_an_override_is_read_by_the_type_of_its_place():
    assert read_value("3", Sections, ("retry", "maxAttempts"), Source()) == (3, [])
    assert read_value("a: b", Sections, ("http", "queryTemplate", "q"), Source())[1][0].code is Reason.PACK_WRONG_TYPE
    assert read_value("3", Sections, ("retry", "nope"), Source())[1][0].code is Reason.PACK_UNKNOWN_FIELD
    assert read_value("99", Sections, ("retry", "maxAttempts"), Source())[1][0].code is Reason.PACK_OUT_OF_BOUNDS


def test_a_struct_of_ones_own_can_be_read():
    assert read_document("a: 1", "f", Pack).problems


def test_of_a_file_that_is_all_wrong_only_the_first_problems_are_told():
    found = read_document("\n".join(f"k{n}: 1" for n in range(5_000)), "strange.yaml", Pack)
    assert len(found.problems) == MAX_PROBLEMS
    assert found.tree == {}
