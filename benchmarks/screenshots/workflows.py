"""The workflows in the screenshots, and their model's replies."""

from __future__ import annotations

from typing import Final

from engine.document.builder import Builder
from engine.document.model import Workflow
from engine.values import Value

_THINKING_S: Final = 0.3

_DRAFTS: Final = (
    "Dear neighbors, on Sunday we have a picnic in the park. Please come. There will be food.",
    (
        "Dear neighbors, this Sunday at noon we meet for a picnic by the pond in the park. Bring a blanket and "
        "something you like to eat; we bring lemonade and games."
    ),
    (
        "Dear neighbors,\n\nthis Sunday at noon we meet for a picnic by the pond in the park. Bring a blanket and "
        "a dish to share; there will be lemonade, games, and shade for whoever wants it. If it rains, we meet in the "
        "hall.\n\n"
        "We look forward to seeing you!"
    ),
)
_ADVICE: Final = (
    "Say when and where to meet, so that people can plan.",
    "Say what happens if it rains.",
    "Nothing is missing; it is warm and clear.",
)
_EVERY: Final = "at dusk, wound its clockwork every three hours, and wrote the weather and"
SUMMARIES: Final = (
    "A lighthouse is a tall tower with a lamp that turns and shows ships at sea where the coast is.",
    "For ninety years a keeper lit the lamp each evening, wound its clockwork, and wrote the weather in a book.",
    f"For ninety years a keeper lit the lamp {_EVERY} each passing ship in a book.",
    f"For ninety years the keepers lit the lamp {_EVERY} every passing ship in a book that nobody read.",
    f"For ninety years the keepers lit the lamp {_EVERY} every passing ship in a book that nobody reads now.",
)
"""The replies of the model, by iteration."""
_GENRES: Final = ("Story", "Poem", "Letter", "Report", "Song")
_TITLES: Final = ("Outline", "Draft", "Facts", "Style", "Rhythm", "Gather", "Rewrite", "Shorten", "Polish")
_STEPS: Final = (
    ("Outline", "Draft"),
    *(("Draft", critic) for critic in ("Facts", "Style", "Rhythm")),
    *((critic, "Gather") for critic in ("Facts", "Style", "Rhythm")),
    ("Gather", "Rewrite"),
    ("Rewrite", "Shorten"),
    ("Shorten", "Polish"),
)
ROWS: Final = "task\nInvite the neighbors to a picnic.\nThank the librarian who retires.\nAsk for quiet after ten.\n"
"""A table whose rows are tasks."""


def script(pause_s: float) -> dict[str, object]:
    """The replies of the model; the second draft is streamed with that pause between chunks."""
    rules: list[dict[str, object]] = []
    for node, texts in (("draft", _DRAFTS), ("improve", _DRAFTS), ("critique", _ADVICE), ("rewrite", SUMMARIES)):
        for iteration, text in enumerate(texts):
            slow = pause_s if (node, iteration) == ("draft", 1) else 0.0
            reply = {"text": text, "stream": 6, "chunk_delay_s": slow, "delay_s": _THINKING_S}
            rules.append({"node": node, "iteration": iteration, "reply": reply})
    rules.append({"node": "find_gaps", "reply": {"text": "Who read the book in the end?", "delay_s": _THINKING_S}})
    price = {"input_usd_per_million_tokens": 0.15, "output_usd_per_million_tokens": 0.6}
    return {"rules": rules, "default": _DRAFTS[1], "price": price}


def sixty_nodes() -> Workflow:
    """Sixty nodes: five parallel loops, whose results are compared."""
    nodes: list[dict[str, object]] = [
        {"id": "topic", "type": "input", "title": "Topic", "config": {"default": "A market in the rain"}},
        {"id": "plan", "type": "llm", "title": "Plan", "config": {"prompt": "{{input}}"}},
        {"id": "gather", "type": "transform", "title": "Gather", "config": {"template": "{{input}}"}},
        {"id": "choose", "type": "llm", "title": "Choose", "config": {"prompt": "{{input}}"}},
        {"id": "text", "type": "output", "title": "Text"},
    ]
    edges = [("topic.value", "plan.input"), ("gather.output", "choose.input"), ("choose.output", "text.value")]
    for genre in _GENRES:
        ids = {title: f"{genre}_{title.replace(' ', '_')}".casefold() for title in _TITLES}
        loop, end = f"{genre}_loop".casefold(), f"{genre}_exit".casefold()
        nodes.append({"id": loop, "type": "loop", "title": genre, "config": {"inject_feedback": False}})
        for title, node in ids.items():
            kind = ("transform", {"template": "{{input}}"}) if title == "Gather" else ("llm", {"prompt": "{{input}}"})
            nodes.append({"id": node, "type": kind[0], "title": title, "config": kind[1]})
        nodes.append({"id": end, "type": "exit", "title": "Exit", "config": {"loop": loop}})
        edges += [("plan.output", f"{loop}.input"), (f"{loop}.body", f"{ids['Outline']}.input")]
        edges += [(f"{ids[before]}.output", f"{ids[after]}.input") for before, after in _STEPS]
        edges += [(f"{ids['Polish']}.output", f"{end}.input"), (f"{end}.output", "gather.input")]
    wires = [{"from": start, "to": end} for start, end in edges]
    return Workflow.model_validate({"name": "Sixty nodes", "nodes": nodes, "edges": wires})


def chain_workflow() -> Workflow:
    """Two model nodes in a row, to be wrapped in a loop."""
    flow = Builder("Two steps")
    topic = flow.add("input", id="topic", title="Topic", default="A picnic in the park on Sunday")
    draft = flow.add("llm", id="draft", title="Draft", prompt="Write a note about this: {{input}}")
    improve = flow.add("llm", id="improve", title="Improve", prompt="Improve this note: {{input}}")
    note = flow.add("output", id="note", title="Note")
    flow.connect(topic["value"], draft["input"])
    flow.connect(draft["output"], improve["input"])
    flow.connect(improve["output"], note["value"])
    return flow.build()


def approval_workflow() -> Workflow:
    """A draft that a person approves."""
    flow = Builder("Approved letter")
    task = flow.add("input", id="task", title="Task", default="Tell the neighbors of the picnic on Sunday.")
    draft = flow.add("llm", id="draft", title="Draft", prompt="{{input}}")
    check = flow.add("approval", id="check", title="May it go out?", message="May this go to all neighbors?")
    sent = flow.add("output", id="sent", title="Sent")
    kept = flow.add("output", id="kept_back", title="Kept back")
    flow.connect(task["value"], draft["input"])
    flow.connect(draft["output"], check["input"])
    flow.connect(check["approved"], sent["value"])
    flow.connect(check["rejected"], kept["value"])
    return flow.build()


def summary_workflow() -> Workflow:
    """A loop over two model nodes that stops when the summary is stable."""
    flow = Builder("Converging summary")
    text = flow.add("input", id="text", title="Text", default="The keepers' log, 1854 to 1944, in nine volumes.")
    loop = flow.add(
        "loop",
        id="loop",
        title="Until it is stable",
        max_iterations=10,
        stop_when=[{"condition": "stable_output", "threshold": 0.95}],
        inject_feedback=False,
    )
    find = flow.add("llm", id="find_gaps", title="Find gaps", prompt="What does this leave out?\n\n{{input}}")
    rewrite = flow.add("llm", id="rewrite", title="Rewrite", prompt="Rewrite the summary. Mind: {{input}}")
    exit_ = flow.add("exit", id="exit", title="Exit", loop="loop")
    summary = flow.add("output", id="summary", title="Summary")
    flow.connect(text["value"], loop["input"])
    flow.connect(loop["body"], find["input"])
    flow.connect(find["output"], rewrite["input"])
    flow.connect(rewrite["output"], exit_["input"])
    flow.connect(exit_["output"], summary["value"])
    return flow.build()


def questionnaire_workflow() -> Workflow:
    """A workflow with an input of each kind."""
    flow = Builder("Questionnaire")
    write = flow.add("llm", id="write", title="Write", prompt="{{topic}} {{words}} {{formal}} {{facts}}")
    inputs: tuple[tuple[str, str, Value], ...] = (
        ("topic", "text", None),
        ("words", "number", 120),
        ("formal", "boolean", True),
        ("facts", "json", {"a": 1}),
    )
    for name, kind, default in inputs:
        given = flow.add("input", id=name, title=name.title(), config={"type": kind, "default": default})
        flow.connect(given["value"], write[name])
    flow.connect(write["output"], flow.add("output", id="letter", title="Letter")["value"])
    return flow.build()


def json_workflow() -> Workflow:
    """A workflow whose result is JSON."""
    flow = Builder("Facts")
    town = flow.add("input", id="town", title="Town", default="Delft")
    facts = flow.add(
        "transform",
        id="facts",
        title="Facts",
        mode="expression",
        expression='{"town": input, "people": 109573, "canals": ["Oude Delft", "Voorstraat"], "port": false}',
    )
    flow.connect(town["value"], facts["input"])
    flow.connect(facts["output"], flow.add("output", id="result", title="Result")["value"])
    return flow.build()
