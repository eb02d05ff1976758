from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.expr import TemplateError, compile_template, escape_template
from engine.expr.scope import MAX_EXPRESSION_PLACEHOLDERS, MAX_TEMPLATE_BYTES
from engine.values import Value
from tests.wording import mentions


def render(text: str, **scope: Value) -> str:
    return compile_template(text).render(scope)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("", ""),
        ("no hole", "no hole"),
        ("Improve {{input}}, then {{ critique }}.", "Improve the draft, then be brief."),
        ("{{input}}{{critique}}", "the draftbe brief"),
        ("{{\n data.title\t}}", "T"),
        ("{{ data }}", '{"list":[1,2.5,null],"title":"T"}'),
        ("{{ data.list[1] + 1 }}", "3.5"),
        ("{{nothing}}", ""),
        ("{{ nothing == null }}", "true"),
        ("{{yes}} {{number}} {{half}}", "true 12 0.5"),
        ("{{ null }}{{ true }}", "true"),
        (r"\{{input}}", "{{input}}"),
        (r"\{{ \{{{input}}", "{{ {{{input}}"),
        (r"\\{{input}}", r"\{{input}}"),
        ("{ {input} }} }", "{ {input} }} }"),
        ("{{ '}}' + \"{{\" }}", "}}{{"),
        ("{{ {'a': {'b': 1}}.a.b }}", "1"),
        ("{{ {'a': {'b': 1}}}}", '{"a":{"b":1}}'),
        ("{{ {} }}", "{}"),
        ("{{ 'http://host' }}", "http://host"),
        ("{{ input // a remark }}", "the draft"),
        ("{{ '''a\nb''' }}", "a\nb"),
    ],
)
def test_a_template_is_rendered(text: str, outcome: str) -> None:
    data: Value = {"title": "T", "list": [1, 2.5, None]}
    scope: dict[str, Value] = {"input": "the draft", "critique": "be brief", "data": data, "nothing": None}
    scope |= {"yes": True, "number": 12, "half": 0.5}
    assert compile_template(text).render(scope) == outcome


def test_a_template_with_plain_paths_is_plain() -> None:
    assert compile_template("a {{b}} {{ c.d }}").is_plain
    assert compile_template("no hole").is_plain
    assert not compile_template("{{b}} {{ b + 1 }}").is_plain
    assert not compile_template("{{ null }}").is_plain


@pytest.mark.parametrize("value", ["{{secret}}", "{{ 1 + 1 }}", r"\{{secret}}", "}}{{secret}}{{"])
def test_inserted_values_are_never_rendered_again(value: str) -> None:
    assert render("<{{a}}>", a=value, secret="S") == f"<{value}>"
    assert render("<{{a + ''}}>", a=value, secret="S") == f"<{value}>"


def test_inserted_values_cannot_form_a_placeholder() -> None:
    assert render("{{a}}{{b}}secret{{c}}", a="{", b="{", c="}}", secret="S") == "{{secret}}"


@pytest.mark.parametrize(
    ("text", "position", "parts"),
    [
        ("ab {{input", 3, "not closed"),
        ("{{ {'a': 1 }}", 0, "not closed"),
        ("{{}}", 2, "empty"),
        ("{{a}} {{ \n }}", 8, "empty"),
        ("it's {{ it's }}", 10, "' … not closed"),
        ("x {{ a b }}", 7, "`b`"),
        ("x {{ a + }}", 9, "ends before it is complete"),
        ("x {{ loop }}", 5, "`loop` … group"),
        ("{{ '" + "a" * 1000 + "' }}", 2, "1,004 characters"),
    ],
)
def test_syntax_errors_have_a_position_in_the_template(text: str, position: int, parts: str) -> None:
    with pytest.raises(TemplateError) as caught:
        compile_template(text)
    assert caught.value.position == position
    assert mentions(caught.value.message, parts)


@pytest.mark.parametrize(
    ("text", "position", "parts"),
    [
        ("ab {{unknown}}", 5, "`unknown` … big, data, nothing, text"),
        ("ab {{ data.subtitle }}", 5, "`data` … `subtitle`"),
        ("ab {{ 1 + text }}", 10, "a number … a text"),
        ("{{text.title}}", 2, "`text` … a text … `title`"),
        ("{{nothing.title}}", 2, "`nothing` … empty (null) … `title`"),
        ("{{big}}", 2, "number"),
    ],
)
def test_a_placeholder_without_a_value_is_an_error(text: str, position: int, parts: str) -> None:
    scope: dict[str, Value] = {"data": {"title": "T"}, "text": "t", "nothing": None, "big": 10**5000}
    with pytest.raises(TemplateError) as caught:
        compile_template(text).render(scope)
    assert caught.value.position == position
    assert mentions(caught.value.message, parts)


def test_a_rendered_text_has_at_most_a_megabyte() -> None:
    text = "a" * (MAX_TEMPLATE_BYTES - 2)
    assert render("<{{a}}>", a=text) == f"<{text}>"
    with pytest.raises(TemplateError, match=r"longer than 1,000,000 bytes"):
        render("<{{a}}>", a=text + "a")


def test_the_length_of_a_rendered_text_is_counted_in_bytes() -> None:
    assert len(render("{{a}}", a="é" * (MAX_TEMPLATE_BYTES // 2))) == MAX_TEMPLATE_BYTES // 2
    with pytest.raises(TemplateError, match=r"longer than 1,000,000 bytes"):
        render("{{a}}b", a="é" * (MAX_TEMPLATE_BYTES // 2))
    with pytest.raises(TemplateError, match=r"longer than 1,000,000 bytes"):
        render("b" * (MAX_TEMPLATE_BYTES + 1))


@pytest.mark.parametrize("text", ["{{a}}" * 1_000, "{{ [a, a, a] }}", "{{b}}", "{{ b.map(x, b) }}"])
def test_a_huge_text_is_refused_before_it_is_built(text: str) -> None:
    shared: Value = ["a" * 999_000] * 5_000
    with pytest.raises(TemplateError, match=r"longer than 1,000,000 bytes|larger than|too much work"):
        render(text, a="a" * 900_000, b=shared)


def test_the_placeholders_of_a_template_share_one_limit_of_work() -> None:
    work = "{{ items.map(x, x + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1).size() }}"
    items: Value = list(range(10_000))
    assert render(work * 2, items=items) == "1000010000"
    with pytest.raises(TemplateError, match="too much work"):
        render(work * 20, items=items)


def test_a_template_has_a_limited_number_of_expressions_and_any_number_of_plain_paths() -> None:
    assert render("{{1}}" * MAX_EXPRESSION_PLACEHOLDERS) == "1" * MAX_EXPRESSION_PLACEHOLDERS
    assert render("{{a}}" * 10_000, a=1) == "1" * 10_000
    with pytest.raises(TemplateError, match="more than 100 placeholders with an expression"):
        compile_template("{{1}}" * (MAX_EXPRESSION_PLACEHOLDERS + 1))


def test_a_value_that_is_nested_too_deeply_is_refused() -> None:
    deep: Value = "x"
    for _ in range(50_000):
        deep = [deep]
    with pytest.raises(TemplateError, match="nested too deeply"):
        render("{{deep}}", deep=deep)


def test_a_lone_surrogate_passes_through() -> None:
    assert render("{{a}}", a="\ud800" * 300_000) == "\ud800" * 300_000


def test_the_same_text_is_compiled_once() -> None:
    assert compile_template("once {{a}}") is compile_template("once {{a}}")


@given(st.text() | st.text(alphabet="{}\\a '\"", max_size=20))
def test_an_escaped_text_renders_unchanged(text: str) -> None:
    template = compile_template(escape_template(text))
    assert template.render({}) == text
    assert template.paths == frozenset()


@given(st.text(alphabet="{}\\ ab'\"", max_size=30), st.text(alphabet="{}\\ ab'\"", max_size=30))
def test_any_value_is_inserted_unchanged_between_any_texts(before: str, value: str) -> None:
    template = compile_template(f"{escape_template(before)}|{{{{value}}}}|{escape_template(before)}")
    assert template.render({"value": value}) == f"{before}|{value}|{before}"
