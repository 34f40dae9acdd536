"""How a migration's file is cut into statements."""

import pytest

from patra.kernel.db.migrate import _statements


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", 0),
        ("-- nothing but a comment", 0),
        ("/* nothing;\n either */\n", 0),
        ("CREATE TABLE a (x TEXT)", 1),
        ("CREATE TABLE a (x TEXT);", 1),
        ("CREATE TABLE a (x TEXT); CREATE TABLE b (x TEXT);", 2),
        ("INSERT INTO a VALUES (';'); INSERT INTO a VALUES ('it''s; so');", 2),
        ('CREATE TABLE "a;b" (x TEXT);', 1),
        ("CREATE TABLE a ( -- one; two\n x TEXT\n);\n-- the end;\n", 1),
        ("-- first;\nSELECT 1;\n\n-- second;\nSELECT 2;\n", 2),
        ("CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE a SET x = 1; UPDATE a SET x = 2; END; SELECT 1;", 2),
    ],
)
def test_a_file_is_cut_at_the_semicolons_that_end_statements(text: str, parts: int):
    found = list(_statements(text))
    assert len(found) == parts
    assert "".join(found).strip() in text
