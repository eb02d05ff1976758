from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.cli.document_commands import flowchart
from engine.document.files import to_workflow
from tests.engine.cli.kit import Program, document, refine, write


def drawn(source: dict[str, Any]) -> list[str]:
    return flowchart(to_workflow(source, "w")).splitlines()


def nested(depth: int) -> dict[str, Any]:
    loops = range(depth)
    nodes = [{"id": "task", "type": "input"}]
    nodes += [{"id": f"l{i}", "type": "loop"} for i in loops]
    nodes += [{"id": "work", "type": "transform", "config": {"template": "{{input}}"}}]
    nodes += [{"id": f"e{i}", "type": "exit", "config": {"loop": f"l{i}"}} for i in loops]
    edges = ["task.value > l0.input"]
    edges += [f"l{i}.body > l{i + 1}.input" for i in loops[:-1]]
    edges += [f"l{depth - 1}.body > work.input", f"work.output > e{depth - 1}.input"]
    edges += [f"e{i + 1}.output > e{i}.input" for i in loops[:-1]]
    return document(nodes, edges)


def test_loop_body_is_a_subgraph():
    assert drawn(refine()) == [
        "flowchart TD",
        '    n_task(["task (input)"])',
        '    n_loop{{"loop (loop)"}}',
        '    subgraph body_n_loop["loop: repeated"]',
        '        n_draft["draft (llm)"]',
        "    end",
        '    n_exit{{"exit (exit)"}}',
        '    n_answer(["answer (output)"])',
        "    n_task --> n_loop",
        "    n_loop --> n_draft",
        "    n_draft --> n_exit",
        "    n_exit --> n_answer",
        '    n_exit -.->|"next iteration"| n_loop',
    ]


def test_nested_loop_body_is_a_nested_subgraph():
    lines = drawn(nested(2))
    assert lines[lines.index('    subgraph body_n_l0["l0: repeated"]') :][:7] == [
        '    subgraph body_n_l0["l0: repeated"]',
        '        n_l1{{"l1 (loop)"}}',
        '        subgraph body_n_l1["l1: repeated"]',
        '            n_work["work (transform)"]',
        "        end",
        '        n_e1{{"e1 (exit)"}}',
        "    end",
    ]


def test_dangling_branch_is_drawn_in_its_loop_body():
    source = refine()
    source["nodes"] += [
        {"id": "judge", "type": "router", "title": "", "config": {}},
        {"id": "again", "type": "transform", "title": "", "config": {"template": "{{input}}"}},
    ]
    source["edges"] = [
        {"from": "task.value", "to": "loop.input"},
        {"from": "loop.body", "to": "draft.input"},
        {"from": "draft.output", "to": "judge.input"},
        {"from": "judge.done", "to": "exit.input"},
        {"from": "judge.continue", "to": "again.input"},
        {"from": "exit.output", "to": "answer.value"},
    ]
    lines = drawn(source)
    inside = lines[lines.index('    subgraph body_n_loop["loop: repeated"]') : lines.index("    end")]
    assert '        n_again["again (transform)"]' in inside
    assert '    n_judge -->|"continue"| n_again' in lines


def test_too_deeply_nested_loops_are_drawn_flat():
    lines = drawn(nested(80))
    assert sum("subgraph" in line for line in lines) == 64
    assert sum('{{"' in line for line in lines) == 160


def test_a_title_cannot_break_out_of_its_label():
    source = refine()
    source["nodes"][2]["title"] = '"]; click n_task "javascript:alert(1)"\n%% `b` <b>é</b> [x] #35; end'
    (label,) = re.findall(r'n_draft\["(.*)"\]', "\n".join(drawn(source)))
    assert label == (
        "#34;#93;#59; click n_task #34;javascript:alert(1)#34; #37;#37; #96;b#96; "
        "#60;b#62;#233;#60;#47;b#62; #91;x#93; #35;35#59; end (llm)"
    )


def test_node_named_like_a_mermaid_keyword_is_safe():
    source = document([{"id": "end", "type": "transform"}, {"id": "Bad id]", "type": "transform"}], [])
    assert drawn(source) == [
        "flowchart TD",
        '    n_end["end (transform)"]',
        '    x1["Bad id#93; (transform)"]',
    ]


def test_edges_to_missing_nodes_are_omitted():
    assert drawn(document([{"id": "a", "type": "transform"}], ["a.output > nowhere.input"])) == [
        "flowchart TD",
        '    n_a["a (transform)"]',
    ]


def test_cycles_and_duplicate_ids_are_drawn():
    source = document(
        [{"id": "a", "type": "transform"}, {"id": "b", "type": "transform"}, {"id": "a", "type": "llm"}],
        ["a.output > b.input", "b.output > a.input"],
    )
    assert drawn(source)[1:] == [
        '    n_a["a (transform)"]',
        '    n_b["b (transform)"]',
        "    n_a --> n_b",
        "    n_b --> n_a",
    ]


@given(st.text(st.characters(), max_size=120), st.text(st.characters(), max_size=20))
def test_any_title_and_type_give_plain_ascii_lines(title: str, kind: str):
    source = document([{"id": "a", "type": kind, "title": title}], [])
    (line,) = drawn(source)[1:]
    assert re.fullmatch(r"""    n_a(\[|\(\[|\{|\{\{)"(?:[A-Za-z0-9_ .,:?!()'-]|\#\d+;)+"(\]|\]\)|\}|\}\})""", line)


def test_graph_command_writes_the_flowchart(program: Program, tmp_path: Any):
    file = write(tmp_path, refine())
    ended = program("graph", file)
    assert ended.code == 0
    assert ended.out.startswith("flowchart TD\n")
    assert program("graph", file, "--json").json == {"mermaid": ended.out}
