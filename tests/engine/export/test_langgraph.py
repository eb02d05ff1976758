"""LangGraph modules give the same results as the engine, with the same model calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine import DocumentError, load
from engine.export.langgraph_module import export_langgraph
from engine.nodes.llm import SPEC as LLM_SPEC
from engine.nodes.node_registry import builtin_registry
from tests.architecture.project import ROOT
from tests.engine.export.kit import ALLOWED_IMPORTS, Both, echo, imports_of, module_of
from tests.engine.semantics.agents import agent
from tests.engine.semantics.documents import (
    around,
    each,
    entry,
    flow,
    formula,
    gather,
    held,
    judge,
    leave,
    llm,
    loop,
    off,
    part,
    result,
    rules,
    transform,
)
from tests.engine.semantics.models import verdict

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

CRITIC = {
    "edges": "loop -> draft -> critique -> exit\ndraft -> join.draft\ncritique -> join.critique\njoin -> exit.feedback"
}


def critic(**config: Any) -> Any:
    body = (llm("draft"), llm("critique"), transform("join", "{{draft}}: {{critique}}"))
    return around(*body, **CRITIC, **config)


def template(name: str) -> Any:
    return load(ROOT / "templates" / f"{name}.loop.json")


async def test_self_refine_gives_the_same_result():
    both = await Both(template("self-refine")).play({"task": "Describe rain."})
    both.check("loop")
    assert len(both.their_calls) == 6


def test_agentic_search_calls_the_provided_tool():
    both = Both(
        template("agentic-search"), lambda node, texts: verdict("continue") if node == "enough" else echo(node, texts)
    )
    calls: list[Any] = []

    def search(**arguments: Any) -> Any:
        calls.append(arguments)
        return [{"file": "a.md", "text": "Rain."}]

    assert set(both.run_module({"question": "Why?"}, {"search_files": search})) == {"answer"}
    assert len(calls) == 5
    assert calls[0] == {"limit": 2, "query": echo(*both.their_calls[0])}
    assert any("search_files" in sentence for sentence in both.exported.left_out)
    answer = both.their_calls[-1]
    assert "From a.md:\nRain." in answer[1][-1][1]


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"feedback_mode": "append"},
        {"feedback_mode": "append_window", "append_window": 2},
        {"inject_feedback": True},
        {"output_mode": "last_iteration"},
        {"output_mode": "all_iterations"},
        {"until": "size(output) > 12 && loop.iteration >= 2"},
        {"until": "nodes.join.contains('critique') && loop.index == 1"},
        {"exit_condition": "stable_output", "stability_threshold": 0.7, "stability_patience": 2},
        {"score": "double(size(loop.history)) * (loop.index == 1 ? 9.0 : 1.0)", "on_max_iterations": "return_best"},
        {"until": "loop.index > 1 && loop.history[0].nodes.join.contains('critique') && loop.history[1].index == 1"},
        {"until": "loop.history.exists(one, has(one.nodes.draft) && one.nodes.critique != '')"},
        {"until": "string(loop.history).contains('nodes')"},
        {"until": "loop.history[2].nodes.join != null || loop.history[3].index == 3"},
        {"until": "similarity != null && similarity > 0.99", "on_max_iterations": "return_with_flag"},
        {"condition": "input == 'seed'"},
        {"condition": "size(input) > 10"},
        {
            "exit_conditions": [
                {"condition": "stable_output", "threshold": 0.5},
                {"condition": "max_iterations", "count": 3},
            ]
        },
        {
            "exit_conditions": [
                {"condition": "until", "until": "loop.iteration > 1"},
                {"condition": "max_iterations", "count": 3},
            ],
            "exit_when": "all",
        },
    ],
    ids=str,
)
async def test_loop_settings_have_the_same_effect(config: dict[str, Any]):
    both = await Both(critic(max_iterations=4, **config)).play()
    both.check("loop")


async def test_max_iterations_can_fail_the_loop():
    both = Both(critic(max_iterations=2, until="false", on_max_iterations="fail"))
    with pytest.raises(RuntimeError, match="did not converge within 2 iterations"):
        both.run_module({"text": "seed"})


@pytest.mark.parametrize("wiring", ["", "check.continue -> more", "check.continue -> exit.feedback"])
async def test_an_evaluator_ends_its_loop(wiring: str):
    def reply(node: str, messages: list[tuple[str, str]]) -> str:
        if node == "check":
            return verdict("done" if len(both.our_calls) + len(both.their_calls) in {6, 12} else "continue", "so so")
        return echo(node, messages)

    more = (transform("more", "{{input}} once more"),) if "more" in wiring else ()
    body = (llm("draft"), judge("check", criteria="Is {{input}} good, after {{loop.iteration}}?"), *more)
    edges = f"loop -> draft -> check\ncheck.done -> exit\n{wiring}"
    both = Both(around(*body, edges=edges, exit_condition="evaluator", max_iterations=5), reply)
    await both.play()
    both.check("loop")
    assert both.ours.loop.exit_reason == "evaluator_done"


async def test_an_unreadable_verdict_is_requested_twice_and_never_counts_as_done():
    def reply(node: str, messages: list[tuple[str, str]]) -> str:
        return "not done at all" if node == "check" else echo(node, messages)

    body = (llm("draft"), judge("check"))
    workflow = around(
        *body, edges="loop -> draft -> check\ncheck.done -> exit", exit_condition="evaluator", max_iterations=2
    )
    both = await Both(workflow, reply).play()
    assert both.theirs == both.ours.result.outputs
    assert [node for node, _ in both.their_calls] == [node for node, _ in both.our_calls]
    ours, theirs = both.loop()
    assert [record["branch"] for record in theirs] == [record["branch"] for record in ours] == ["continue", "continue"]


@pytest.mark.parametrize(
    ("texts", "branch"),
    [
        ("{'Branch': 'DONE', 'reason': 'it's fine',} // so", "done"),
        ("{“branch”: “done”, “reason”: “one\nline”}", "done"),
        ("**Decision:** ｄｏｎｅ", "done"),
        ('{"branch": "continue"}\n```json\n{"branch": "continue", "reason": "again"}\n```', "continue"),
        ('Such as {"branch": "continue"}. Mine: {"branch": "done"}', "continue"),
        ("Branch: done\nBranch: continue", "continue"),
        ('{"example": {"branch": "done"}, "branch": "do', "continue"),
        ('{"branch": "done" | "continue"}', "continue"),
    ],
)
async def test_verdicts_are_parsed_the_same_in_any_dialect(texts: str, branch: str):
    body = (llm("draft"), judge("check"))
    edges = "loop -> draft -> check\ncheck.done -> exit"
    workflow = around(*body, edges=edges, exit_condition="evaluator", max_iterations=2)
    both = await Both(workflow, lambda node, asked: texts if node == "check" else echo(node, asked)).play()
    both.check("loop")
    assert both.loop()[1][0]["branch"] == branch
    assert both.ours.loop.exit_reason == ("evaluator_done" if branch == "done" else "max_iterations")


@pytest.mark.parametrize(
    ("texts", "score", "exit_reason"),
    [
        ('{"Reason": "r", "SCORE": "9/10", "done": "Yes"}', 9.0, "judge_done"),
        ("{'reason': 'r', 'score': 8,5, 'done': True}", 8.5, "judge_done"),
        ("Score: 90%\nDone: yes\nReason: r", 9.0, "judge_done"),
        ('{"reason": "r", "score": 11, "done": true}', None, "max_iterations"),
        ('{"reason": "r", "score": NaN, "done": true}', None, "max_iterations"),
        (
            '{"reason": "r", "score": 9, "done": false} {"reason": "r", "score": 9, "done": true}',
            None,
            "max_iterations",
        ),
        ('{"reason": "r", "score": 9, "done": true', None, "max_iterations"),
    ],
)
async def test_judgments_are_parsed_the_same_in_any_dialect(texts: str, score: float | None, exit_reason: str):
    config = {"exit_condition": "judge", "judge": {"criteria": "Good."}, "max_iterations": 2}
    workflow = around(transform("longer", "{{input}}+"), edges="loop -> longer -> exit", **config)
    both = await Both(workflow, lambda _node, _asked: texts).play()
    both.check("loop")
    assert (both.ours.loop.iterations[-1].score, both.ours.loop.exit_reason) == (score, exit_reason)


@pytest.mark.parametrize(
    ("first", "gives"),
    [
        ("{'N': '4', // four\n 'ok': 'Yes',}", {"n": 4, "ok": True}),
        ('{"n": 4}\n{"n": 4}', {"n": 4}),
        ('{"n": 1} or {"n": 2}', {"n": 7}),
        ('{"n": 1', {"n": 7}),
        ('[1] {"n": "many"} {"m": 1, "ok": 2}', {"n": 7}),
    ],
)
async def test_structured_replies_are_parsed_the_same_in_any_dialect(first: str, gives: Any):
    properties = {"n": {"type": "integer"}, "ok": {"type": "boolean"}}
    schema = {"type": "object", "properties": properties, "required": ["n"]}
    workflow = flow(entry(), llm("ask", reply_schema=schema), result(), edges="text -> ask -> out")
    both = await Both(workflow, lambda _node, texts: '{"n": 7}' if len(texts) > 1 else first).play()
    both.check()
    assert both.theirs == {"out": gives}


def test_a_module_that_parses_verdicts_names_its_packages():
    body = (llm("draft"), judge("check"))
    text = export_langgraph(
        around(*body, edges="loop -> draft -> check\ncheck.done -> exit", exit_condition="evaluator")
    ).text
    assert imports_of(text) <= ALLOWED_IMPORTS
    installed = next(line for line in text.splitlines() if "pip install" in line)
    assert "json-repair" in installed
    assert "json-repair" not in export_langgraph(critic()).text


@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("rubric", [[], [{"name": "clear", "weight": 2.0}, {"name": "short", "weight": 1.0}]])
async def test_a_judge_scores_and_ends_its_loop(rubric: list[Any], runs: int):
    def reply(node: str, messages: list[tuple[str, str]]) -> str:
        if node != "judge":
            return echo(node, messages)
        score = len(messages[-1][1]) % 7
        scored = {"scores": {"clear": score, "short": 3}} if rubric else {"score": score}
        return json.dumps({"reason": "so so", **scored, "done": score > 5})

    criteria = "Better than {{loop.previous}}."
    config = {"judge": {"criteria": criteria, "rubric": rubric, "runs": runs, "threshold": 5.0}}
    body = transform("longer", "{{input}}+")
    workflow = around(
        body,
        edges="loop -> longer -> exit",
        exit_condition="judge",
        max_iterations=9,
        on_max_iterations="return_best",
        **config,
    )
    both = await Both(workflow, reply).play()
    both.check("loop")
    assert both.ours.loop.iterations[0].score is not None


async def test_nested_loops():
    inner = (
        loop("inner", max_iterations=2),
        llm("draft", "{{input}} {{loop.parent.index}}.{{loop.index}}"),
        leave("end", "inner"),
    )
    workflow = around(
        *inner, transform("join", "{{input}} | {{loop.last.join}}"),
        edges="loop -> inner -> draft -> end\nend -> join -> exit", max_iterations=3,
    )  # fmt: skip
    both = await Both(workflow).play()
    both.check("loop")
    assert len(both.their_calls) == 6


async def test_routers_joins_and_dead_branches():
    parts = (
        entry(), rules("way", {"long": "size(input) > 5", "short": "else"}), llm("a"), llm("b"),
        transform("join", "{{input}}!"), result(), result("reason"), result("never"),
    )  # fmt: skip
    edges = "text -> way\nway.long -> a -> join\nway.short -> b -> join\njoin -> out\nway.reason -> reason\na -> never"
    for text in ("much longer", "tiny"):
        both = await Both(flow(*parts, edges=edges)).play({"text": text})
        both.check()
        assert ("never" in both.theirs) == (text == "much longer")


async def test_structured_replies_and_validators():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    parts = (
        entry(), llm("ask", reply_schema=schema), part("check", "validator", mode="schema", json_schema=schema),
        part("size", "validator", mode="expression", expression="input.n > 3", message="too small"),
        result(), result("errors"), result("small"),
    )  # fmt: skip
    edges = "text -> ask -> check -> size -> out\nsize.errors -> errors\nsize.invalid -> small"
    for reply in ('{"n": 4}', 'Here: ```json\n{"n": 2}\n``` as asked'):
        both = await Both(flow(*parts, edges=edges), lambda _node, _said, reply=reply: reply).play()
        both.check()


async def test_a_reply_that_does_not_follow_its_schema_is_requested_again():
    schema = {"type": "object", "required": ["n"]}
    workflow = flow(entry(), llm("ask", reply_schema=schema), result(), edges="text -> ask -> out")
    both = await Both(workflow, lambda _node, texts: '{"n": 1}' if len(texts) > 1 else "nothing").play()
    assert both.theirs == both.ours.result.outputs == {"out": {"n": 1}}
    assert len(both.their_calls) == len(both.our_calls) == 2


async def test_state_passes_between_nodes():
    body = (llm("draft", "{{input}} {{state.note}}"), transform("keep", "{{input}}!", output_key="note"))
    both = await Both(around(*body, edges="loop -> draft -> keep -> exit", max_iterations=3)).play()
    both.check("loop")


async def test_disabled_nodes_pass_their_input_on_or_are_skipped():
    parts = (entry(), off(transform("one", "never")), off(llm("two", "{{input}} {{more}}")), result(), result("gone"))
    both = await Both(flow(*parts, edges="text -> one -> out\ntext -> two.input\ntext -> two.more\ntwo -> gone")).play()
    both.check()
    assert both.theirs == {"out": "seed"}


async def test_pinned_nodes_are_not_called():
    body = (loop(max_iterations=2), held(llm("draft"), output="pinned"), llm("polish"), leave())
    more = (
        held(loop("again"), output="kept", count=3),
        llm("never"),
        leave("end", "again"),
        transform("tell", "{{n}}"),
    )
    edges = "text -> loop -> draft -> polish -> exit -> out\ntext -> again -> never -> end\nagain.count -> tell.n"
    workflow = flow(entry(), *body, *more, result(), result("told"), edges=f"{edges}\ntell -> told")
    both = await Both(workflow).play()
    both.check()
    assert {node for node, _ in both.their_calls} == {"polish"}
    assert both.theirs["told"] == "3"


def test_a_pinned_aggregator_is_listed_as_left_out():
    parts = (entry("items", type="json", default=["a"]), each(), llm("draft"), held(gather(), output=["x"]), result())
    exported = export_langgraph(flow(*parts, edges="items -> each -> draft -> gather -> out"))
    assert any("gather" in sentence and "pinned" in sentence for sentence in exported.left_out)


async def test_problems_of_disabled_nodes_are_not_exported():
    parts = (
        entry(), off(entry("tone")), off(loop(until="1 +")), transform("draft", "{{input"), leave(),
        off(part("part", "subflow")), off(llm("say", temperature="warm")), result(), off(result("old", name="out")),
    )  # fmt: skip
    edges = "text -> loop -> draft -> exit -> part.given\npart.made -> say -> out\ntone -> old"
    both = await Both(flow(*parts, edges=edges)).play()
    both.check()
    assert both.theirs == {"out": "seed"}


@pytest.mark.parametrize(
    "expression",
    [
        "1 + 2 * 3 - 4", "7 / 2 + -7 / 2", "-7% 3", "7.0 / 2.0", "'a' + 'b'", "[1] + [2]",
        "!(1 > 2) && 2 >= 2 || false",
        "1 < 2 ? 'yes' : 'no'", "'b' in ['a', 'b']", "'k' in {'k': 1}", "{'a': [1, {'b': null}]}.a[1]",
        "size('abc') == 3",
        "'abc'.contains('b')", "'abc'.startsWith('a') && 'abc'.endsWith('c')", "' aB '.trim().upper() + 'X'.lower()",
        "'a,b'.split(',').join('-')", "'aXa'.replace('a', 'b')", "'abcdef'.substring(1, 3) + 'abc'.substring(1)",
        "[1, 2, 3].map(x, x * 2).filter(y, y > 2)", "[1, 2].all(x, x > 0) && [1, 2].exists(x, x > 1)",
        "[1, 2, 3].map(x, x > 1, x + 1)", "has({'a': 1}.a) && !has({'a': 1}.b)", "int('7') + int(2.9)", "double('1.5')",
        "string(12) + string([1, 'a'])", "'ab12'.matches('[0-9]+')", "text.size()",
        "[text].map(inputs, inputs + '!')[0]", "[1].map(class, class)[0]",
        "[1, 2, 2].exists_one(x, x > 1) || [1, 2].exists_one(x, x > 1)", "'\\'\"' + \"'\"", "[3, 1][size('a')]",
    ],
)  # fmt: skip
async def test_expressions_mean_the_same(expression: str):
    edges = "made -> out" + ("\ntext -> made.text" if "text" in expression else "")
    both = await Both(flow(entry(), formula("made", expression), result(), edges=edges)).play()
    both.check()


def test_unsupported_parts_are_listed_in_the_module_and_fail_there():
    parts = (
        entry(),
        formula("helper", "bool(input)"),
        result(),
    )
    exported = export_langgraph(flow(*parts, edges="text -> helper -> out"))
    texts = [sentence for sentence in exported.left_out if "is left out" in sentence]
    assert len(texts) == 1
    assert all(sentence in " ".join(exported.text.split()) for sentence in texts)
    with pytest.raises(NotImplementedError, match=r'"Transform" \(transform, helper\) is left out'):
        module_of(exported.text).run({"text": "x"})


def test_a_plugin_node_type_is_listed_in_the_module_and_fails_there():
    registry = builtin_registry().with_types([replace(LLM_SPEC, type="writer")])
    workflow = flow(entry(), part("draft", "writer", prompt="{{input}}"), result(), edges="text -> draft -> out")
    exported = export_langgraph(workflow, registry)
    (sentence,) = [sentence for sentence in exported.left_out if "is left out" in sentence]
    assert '"writer"' in sentence
    with pytest.raises(NotImplementedError, match="writer"):
        module_of(exported.text).run({"text": "x"})


def test_left_out_settings_are_listed():
    workflow = critic(budget_usd=1.0, timeout_s=5.0, retries=1, on_error="continue")
    text = " ".join(export_langgraph(workflow).left_out)
    for words in (
        "its budget only",
        "its time limit only",
        "not restarted",
        "fails the run",
    ):
        assert words in text


def test_a_document_with_errors_is_refused():
    with pytest.raises(DocumentError):
        export_langgraph(flow(entry(), llm("draft", "{{"), result(), edges="text -> draft -> out"))


@pytest.mark.parametrize("name", ["self-refine", "agentic-search"])
def test_the_module_needs_nothing_of_loopwright(name: str):
    text = export_langgraph(template(name)).text
    assert imports_of(text) <= ALLOWED_IMPORTS
    assert "engine" not in imports_of(text)


def test_the_module_runs_as_a_program(tmp_path: Path):
    file = tmp_path / "exported.py"
    file.write_text(
        export_langgraph(flow(entry(), transform("made", "{{input}}!"), result(), edges="text -> made -> out")).text
    )
    command = [sys.executable, "-I", str(file), '{"text": "Rain"}']
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"out": "Rain!"}
    assert (
        subprocess.run([*command[:-1], '{"nonsense": 1}'], capture_output=True, timeout=120, check=False).returncode
        == 1
    )


def answering_litellm(monkeypatch: pytest.MonkeyPatch, reply: Callable[..., Any]) -> None:
    """Replace litellm with a fake whose models give this reply."""

    def completion(**asked: Any) -> Any:
        return SimpleNamespace(choices=[SimpleNamespace(message=reply(**asked))], usage=None)

    litellm = types.ModuleType("litellm")
    litellm.__dict__["completion"] = completion
    monkeypatch.setitem(sys.modules, "litellm", litellm)


def test_every_model_setting_and_fallback_reaches_litellm(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, Any]] = []

    def reply(*, messages: Any, **asked: Any) -> Any:
        assert messages[-1] == {"role": "user", "content": "Hi"}
        made.append(asked)
        if asked["model"] == "openai/first":
            raise ValueError("It is gone.")
        return SimpleNamespace(content=f"from {asked['model']}", tool_calls=None)

    answering_litellm(monkeypatch, reply)
    settings: dict[str, Any] = {
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["END"],
        "reasoning_effort": "low",
        "max_tokens": 7,
    }
    more: dict[str, Any] = {
        "extra_parameters": {"top_k": 4},
        "fallback_models": ["mistral/second"],
        "api_base": "http://localhost:1/v1",
    }
    workflow = flow(entry(), llm("ask", model="openai/first", **settings, **more), result(), edges="text -> ask -> out")

    module = module_of(export_langgraph(workflow).text)

    assert module.run({"text": "Hi"}) == {"out": "from mistral/second"}
    wanted = {**settings, "extra_body": {"top_k": 4}}
    assert made == [
        {"model": "openai/first", **wanted, "base_url": "http://localhost:1/v1"},
        {"model": "mistral/second", **wanted},
    ]


def test_litellm_uses_its_own_price_list_instead_of_downloading_one(monkeypatch: pytest.MonkeyPatch) -> None:
    variable = "LITELLM_LOCAL_MODEL_COST_MAP"
    monkeypatch.setenv(variable, "")
    monkeypatch.delenv(variable)
    answering_litellm(monkeypatch, lambda **_asked: SimpleNamespace(content="Hello.", tool_calls=None))
    workflow = flow(entry(), llm("ask"), result(), edges="text -> ask -> out")

    assert module_of(export_langgraph(workflow).text).run({"text": "Hi"}) == {"out": "Hello."}

    assert os.environ[variable] == "True"


def test_tool_calls_reach_litellm_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def call(name: str, arguments: str) -> Any:
        return SimpleNamespace(id="1", function=SimpleNamespace(name=name, arguments=arguments))

    def reply(*, messages: Any, tools: Any, **_asked: Any) -> Any:
        seen.append((messages, tools))
        calls = [call("read_file", '{"path": "a.txt"}')] if len(seen) == 1 else [call("finish", '{"answer": "12"}')]
        return SimpleNamespace(content=None, tool_calls=[call("read_file", "{broken"), *calls])

    answering_litellm(monkeypatch, reply)
    workflow = flow(entry(), agent("work", tools=["read_file"]), result(), edges="text -> work -> out")
    module = module_of(export_langgraph(workflow).text)
    module.TOOLS["read_file"] = lambda path: 12

    assert module.run({"text": "Hi"}) == {"out": "12"}
    assert seen[0][1][0]["function"]["name"] == "read_file"
    sent = seen[1][0][-2]["tool_calls"]
    assert [(one["type"], one["function"]["name"]) for one in sent] == [("function", "read_file")]
    assert json.loads(sent[0]["function"]["arguments"]) == {"path": "a.txt"}
