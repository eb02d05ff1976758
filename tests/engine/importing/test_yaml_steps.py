"""Import of YAML steps: agents, dependencies, and loops of both kinds."""

from __future__ import annotations

from typing import Any

import pytest

from engine import validate
from engine.document.problems import Severity
from engine.importing.fields import as_seconds
from engine.importing.importers import YAML_STEPS
from engine.importing.reader import ImportResult
from engine.importing.report import Outcome
from engine.importing.yaml_steps_nodes import UntranslatableError, translate_expression
from tests.engine.importing.samples import DEV_CYCLE, FAN_OUT, config, edges, messages, read
from tests.engine.semantics.kit import play
from tests.engine.semantics.models import by_node


def test_a_loop_with_a_judge_is_a_document_without_problems() -> None:
    imported = read(DEV_CYCLE)
    assert validate(imported.workflow) == []
    assert imported.importer is YAML_STEPS
    assert [(node.id, node.type) for node in imported.workflow.nodes] == [
        ("plan_it", "agent"),
        ("dev_cycle", "loop"),
        ("build", "agent"),
        ("check_it", "llm"),
        ("dev_cycle_exit", "exit"),
        ("dev_cycle_result", "output"),
    ]
    assert edges(imported) == {
        "plan_it.output -> dev_cycle.input",
        "dev_cycle.body -> build.input",
        "build.output -> check_it.build",
        "check_it.output -> dev_cycle_exit.input",
        "dev_cycle_exit.output -> dev_cycle_result.value",
    }


def until_entry(expression: str) -> dict[str, str]:
    return {"condition": "until", "expression": expression}


def test_the_settings_of_a_repeated_step_are_carried_over() -> None:
    loop = config(read(DEV_CYCLE), "dev_cycle")
    judge = loop.pop("judge")
    assert loop == {
        "max_iterations": 4,
        "stop_when": [until_entry("nodes.check_it.contains('FINE') || loop.index > 7"), {"condition": "judge"}],
        "delay_s": 90.0,
        "output_mode": "all_iterations",
        "timeout_s": 600.0,
        "retries": 2,
        "inject_feedback": False,
    }
    assert judge["criteria"].startswith("You are referee: Decides whether the work is over.")


def test_agents_become_system_prompts_and_tools() -> None:
    imported = read(DEV_CYCLE)
    build = config(imported, "build")
    assert build["system"] == "You are builder: Writes small modules."
    assert build["tools"] == ["read_file", "shell"]
    assert build["model"] == "openai/gpt-4o-mini"
    assert build["prompt"].startswith("Build round {{loop.index}}. Keep \\{{braces}}.")
    assert build["timeout_s"] == 120.0
    assert config(imported, "check_it")["timeout_s"] == 45.0
    changed = messages(imported, Outcome.CHANGED)
    assert changed["agent builder, tools, bash"] == "shell."
    assert changed["step dev-cycle, loop.until"] == "until: nodes.check_it.contains('FINE') || loop.index > 7"


def test_for_each_is_an_iterator_with_its_aggregator() -> None:
    imported = read(FAN_OUT)
    assert config(imported, "each") == {
        "source": "expression",
        "expression": "items.cities",
        "max_concurrency": 3,
        "on_empty": "fail",
    }
    assert config(imported, "each_results") == {"iterator": "each", "mode": "collect"}
    assert config(imported, "list_cities")["reply_schema"]["required"] == ["cities"]
    assert config(imported, "write")["prompt"] == "Write about it, number {{index}}.\n\nItem {{index}}:\n{{input}}"
    assert edges(imported) == {
        "list_cities.output -> each.items",
        "each.item -> write.input",
        "write.output -> read.write",
        "read.output -> each_results.input",
        "each_results.output -> sum_up.each",
        "sum_up.output -> sum_up_result.value",
    }


def test_for_each_over_a_list_in_the_file() -> None:
    text = """
- id: review
  agent: reader
  instructions: Look at {{item}}.
  loop: {forEach: [one, two], maxConcurrency: 0, outputMode: cumulative}
"""
    imported = read(text)
    assert config(imported, "review") == {
        "source": "list",
        "items": ["one", "two"],
        "max_concurrency": 0,
        "on_empty": "fail",
    }
    assert config(imported, "review_results")["mode"] == "join"
    assert config(imported, "review_step")["prompt"].startswith("Look at {{input}}.")
    assert "step review, agent reader" in messages(imported, Outcome.LEFT_OUT)


def test_a_loop_around_a_single_step_without_dependencies() -> None:
    text = """
steps:
  - id: probe
    instructions: Look whether it runs.
    loop: {maxIterations: 10, until: "content.contains('healthy')", delay: 30s}
"""
    imported = read(text)
    assert validate(imported.workflow) == []
    assert imported.workflow.name == "stem"
    assert config(imported, "probe")["stop_when"] == [until_entry("output.contains('healthy')")]
    assert config(imported, "probe")["delay_s"] == 30.0
    assert edges(imported) >= {"probe_start.output -> probe.input", "probe_step.output -> probe_exit.input"}


def test_a_condition_is_a_router_or_the_condition_of_the_loop() -> None:
    text = """
steps:
  - {id: look, instructions: Look.}
  - {id: weigh, instructions: Weigh.}
  - {id: act, dependsOn: [look, weigh], condition: "steps.weigh.content == 'heavy'", instructions: Act.}
  - id: both
    dependsOn: [look, weigh]
    condition: "steps.weigh.content == steps.look.content"
    instructions: Both.
  - id: again
    dependsOn: [look]
    condition: "steps.look.content != ''"
    instructions: Again.
    loop: {maxIterations: 2}
"""
    imported = read(text)
    assert validate(imported.workflow) == []
    assert config(imported, "act_if")["branches"][0] == {"name": "run", "description": "", "when": "input == 'heavy'"}
    assert edges(imported) >= {
        "weigh.output -> act_if.input",
        "act_if.run -> act.input",
        "look.output -> act.look",
        "weigh.output -> both_test.input",
        "look.output -> both_test.look",
        "both_test.output -> both_if.input",
        "both_if.run -> both_go.input",
        "both_go.output -> both.input",
    }
    assert config(imported, "act")["prompt"] == "Act.\n\nOutput of weigh:\n{{input}}\n\nOutput of look:\n{{look}}"
    assert config(imported, "both_test")["expression"] == '{"run": weigh == look, "value": input}'
    assert config(imported, "again")["condition"] == "input != ''"


def test_unsupported_members_are_reported() -> None:
    text = """
steps:
  - {id: a, instructions: A., dependsOn: [nobody, a], mood: good}
  - id: b
    dependsOn: [a]
    loop:
      maxIterations: 70
      until: "steps.x.status == 'failed'"
      steps:
        - {id: x, instructions: X., loop: {maxIterations: 2}}
  - {id: c, instructions: C., timeout: soon, retries: often}
options: {colour: red, onStepFailure: explode}
secrets: {key: value}
"""
    imported = read(text)
    assert set(messages(imported, Outcome.LEFT_OUT)) >= {
        "step a, dependsOn nobody",
        "step a, dependsOn a",
        "step a, mood",
        "step b, loop.until",
        "step b.x, loop",
        "step c, timeout",
        "step c, retries",
        "options, colour",
        "options, onStepFailure",
        "secrets",
    }
    assert messages(imported, Outcome.CHANGED)["step b, loop.maxIterations"] == "max_iterations: 50."
    assert config(imported, "b")["stop_when"] == [until_entry("steps.x.status == 'failed'")]


_STATUS_LOOP = """
steps:
  - id: b
    loop:
      maxIterations: 4
      until: "UNTIL"
      steps:
        - {id: x-1, instructions: X.}
        - {id: y, instructions: Y., dependsOn: [x-1], condition: "steps.x-1.content != 'draft'"}
"""


@pytest.mark.parametrize(
    ("until", "ours"),
    [
        ("steps.x-1.status == 'completed'", '(nodes.x_1 == null ? "skipped" : "completed") == \'completed\''),
        ("steps['y'].status != 'skipped'", '(nodes.y == null ? "skipped" : "completed") != \'skipped\''),
        (
            "iteration > 1 && status != 'skipped'",
            'loop.index > 1 && (output == null ? "skipped" : "completed") != \'skipped\'',
        ),
        ("content == 'status == 1'", "output == 'status == 1'"),
    ],
)
def test_the_status_of_a_step_is_whether_it_ran(until: str, ours: str) -> None:
    imported = read(_STATUS_LOOP.replace("UNTIL", until))
    assert config(imported, "b")["stop_when"] == [until_entry(ours)]
    assert not [problem for problem in validate(imported.workflow) if problem.severity is Severity.ERROR]


async def test_a_loop_that_waits_for_the_status_of_a_step_ends_when_it_ran() -> None:
    imported = read(_STATUS_LOOP.replace("UNTIL", "steps.y.status == 'completed'"))

    played = await play(imported.workflow, by_node(x_1=["draft", "draft", "final"], y=["done"]), None)

    (loop,) = played.result.loops.values()
    assert (loop.exit_reason, loop.iterations_run) == ("until", 3)


_UNSAYABLE = [
    "steps.x-1.status == 'failed'",
    "steps.x-1.status",
    "steps.x-1.status in ['completed']",
    "steps.x-1.error != ''",
    "steps.x-1.duration > 5",
    "steps.other.content == ''",
    "status == 'failed'",
    "steps.x-1.content.matches_all('x')",
    "context.done",
    "$.done",
]


def errors(imported: ImportResult) -> set[tuple[str | None, str | None]]:
    return {
        (problem.node, problem.field or problem.port)
        for problem in validate(imported.workflow)
        if problem.severity is Severity.ERROR
    }


@pytest.mark.parametrize("expression", _UNSAYABLE)
def test_an_exit_condition_without_counterpart_is_a_problem_of_its_loop(expression: str) -> None:
    assert errors(read(_STATUS_LOOP.replace("UNTIL", expression))) == {("b", "stop_when.0.expression")}


def test_a_judge_that_does_not_exist_is_a_problem_of_its_loop() -> None:
    imported = read("""
steps:
  - id: a
    loop: {maxIterations: 2, untilAgent: nobody, steps: [{id: b, instructions: B.}]}
""")
    assert errors(imported) == {("a", "judge")}
    assert "step a, loop.untilAgent" in messages(imported, Outcome.LEFT_OUT)


@pytest.mark.parametrize(
    "expression", ["steps.a.status == 'failed'", "steps.nobody.content", "content == ''", "a.b.c()"]
)
def test_the_condition_of_a_step_without_counterpart_is_a_problem(expression: str) -> None:
    steps = f"""
steps:
  - {{id: a, instructions: A.}}
  - {{id: b, instructions: B., dependsOn: [a], condition: "{expression}"}}
  - id: c
    dependsOn: [a]
    condition: "{expression}"
    loop: {{maxIterations: 2}}
"""
    assert errors(read(steps)) == {("b_if", "branches.0.when"), ("c", "condition")}


def test_a_condition_on_a_step_without_input_is_a_problem() -> None:
    imported = read('steps:\n  - {id: a, instructions: A., condition: "context.ready"}')
    assert ("a_if", "input") in errors(imported)
    assert "step a, condition" in messages(imported, Outcome.LEFT_OUT)


def test_items_without_counterpart_are_a_problem() -> None:
    imported = read('steps:\n  - {id: a, instructions: A., loop: {forEach: "steps.nobody.result"}}')
    assert errors(imported) == {("a", "items")}


def test_steps_that_wait_for_each_other_are_reported_and_imported() -> None:
    text = "steps:\n  - {id: a, instructions: A., dependsOn: [b]}\n  - {id: b, instructions: B., dependsOn: [a]}"
    imported = read(text)
    assert list(messages(imported, Outcome.LEFT_OUT)) == ["step a, dependsOn b"]
    assert validate(imported.workflow) == []


def _ours(step: str | None, member: str) -> str:
    return f"<{step}.{member}>" if step else f"<{member}>"


@pytest.mark.parametrize(
    ("expression", "ours"),
    [
        ("steps.a.content == 'x'", "<a.content> == 'x'"),
        ("steps.a-b.result.n > 2 && steps.a.content != ''", "<a-b.result>.n > 2 && <a.content> != ''"),
        ("steps['a-b'].content", "<a-b.content>"),
        ("'steps.a.content' + \"iteration\"", "'steps.a.content' + \"iteration\""),
        ("content.contains('it\\'s content')", "<content>.contains('it\\'s content')"),
        ("iteration + 1 > 3 && result.done", "<iteration> + 1 > 3 && <result>.done"),
        ("x.content", "x.content"),
    ],
)
def test_expressions_are_translated(expression: str, ours: str) -> None:
    assert translate_expression(expression, ["a", "a-b"], _ours) == ours


@pytest.mark.parametrize("expression", ["steps.other.content", "steps", "steps['other'].content == 1"])
def test_an_expression_with_an_unknown_step_cannot_be_translated(expression: str) -> None:
    with pytest.raises(UntranslatableError, match="is not a step"):
        translate_expression(expression, ["a"], _ours)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("1m30s", 90), ("500ms", 0.5), ("2h", 7200), (5, 5), ("7", 7), ("soon", None), ("5 s x", None)],
)
def test_durations(text: Any, seconds: float | None) -> None:
    assert as_seconds(text) == seconds


def test_braces_in_a_loop_input_are_text() -> None:
    text = (
        'description: "For {{mustache}} files"\nsteps:\n- id: a\n  instructions: Write.\n  loop: {maxIterations: 2}\n'
    )
    workflow = read(text).workflow
    assert validate(workflow) == []
    start = next(node for node in workflow.nodes if node.type == "transform")
    assert start.config["template"] == "For \\{{mustache}} files"


def test_an_invalid_duration_or_count_is_left_out_and_reported() -> None:
    imported = read(
        "options: {maxConcurrency: 0}\n"
        "steps:\n- id: a\n  instructions: x\n  timeout: -5\n  loop: {forEach: [1, 2], maxConcurrency: many}\n"
        "- id: b\n  instructions: x\n  loop: {maxIterations: 2, delay: -1}\n"
    )
    assert validate(imported.workflow) == []
    left = [entry.place for entry in imported.entries if entry.outcome is Outcome.LEFT_OUT]
    assert left == [
        "options, maxConcurrency",
        "step a, loop.maxConcurrency",
        "step a, timeout",
        "step b, loop.delay",
    ]
