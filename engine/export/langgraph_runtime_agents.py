"""Runtime of exported LangGraph modules: agents and questions to people.

The export copies the functions that a workflow uses into its module, which then needs nothing of Loopwright: only
LangGraph and the other runtime functions.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from langgraph.types import interrupt

from engine.export.langgraph_runtime_loops import exit_loop, with_memory
from engine.export.langgraph_runtime_models import read_answer, read_reply, schema_errors
from engine.export.langgraph_runtime_values import State, Update, node_outputs, skipped, to_text


def ask_at_terminal(question: dict[str, Any]) -> dict[str, Any]:
    """Ask a person on the command line. Pass another function to `run` to ask in another way."""
    about = escaped(f"\n{question.get('error', '')}\n{question['node']}: {question['message']}\n")
    if not question["choices"]:
        return {"value": input(f"{about}Answer: ")}
    shown = value if isinstance(value := question["value"], str) else json.dumps(value, ensure_ascii=False, indent=2)
    about += f"{escaped(shown)}\n{' or '.join(question['choices'])}? "
    choice = ""
    while choice not in question["choices"]:
        choice = input(about).strip()
    return {"choice": choice, "comment": input("Comment (may be empty): ")}


def escaped(text: str) -> str:
    """Escape characters that could control a terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode("ascii") for c in text)


def ask_for_approval(asked: dict[str, Any], schema: Any = None) -> dict[str, Any]:
    """Ask a person to approve a value. An invalid answer is requested again."""
    error = ""
    while True:
        answer = interrupt({**asked, "error": error} if error else asked)
        error = answer_error(answer, asked, schema)
        if not error:
            return answer


def kind_of(value: Any) -> str:
    """The JSON type of a value."""
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


def answer_error(answer: Any, asked: Mapping[str, Any], schema: Any = None) -> str:
    """The error of an answer: an unknown choice, or a value of another type than the value shown."""
    members = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    if members.get("choice") not in asked["choices"]:
        return f"The answer must choose one of: {', '.join(asked['choices'])}."
    before, value = asked["value"], members.get("value")
    if value is None or (schema is not None and members["choice"] != "approve"):
        return ""
    if before is not None and kind_of(before) != kind_of(value):
        return f"The value does not fit: it is of the type {kind_of(value)}, and {kind_of(before)} is needed."
    if schema is None:
        return ""
    errors = schema_errors(schema)
    known = errors(before)
    return next((f"The value does not fit: {error[1]}" for error in errors(value) if error not in known), "")


def request_approval(node: str, message: str, value: Any) -> Update:
    """Let a person approve or reject a value. The run waits for the answer."""
    answer = ask_for_approval({"node": node, "message": message, "value": value, "choices": ["approve", "reject"]})
    port = {"approve": "approved", "reject": "rejected"}[answer["choice"]]
    result = value if answer.get("value") is None else answer["value"]
    return node_outputs(node, {port: result, "comment": answer.get("comment", "")})


def start_agent(agent: str, messages: list[Any]) -> Update:
    """Start an agent."""
    work: dict[str, Any] = {
        "messages": messages, "asked": messages[-1]["content"], "turn": 0, "calls": [], "made": 0, "said": "",
        "last_text": "", "steps": [], "ended": False, "empty": 0,
    }  # fmt: skip
    return {"_agents": {agent: work}}


def skip_agent(agent: str) -> Update:
    """The update for an agent that does not run."""
    return {**skipped(agent), "_agents": {agent: {"ended": True}}}


def next_step(agent: str) -> Callable[[State], str]:
    """A condition for LangGraph: whether an agent calls its model next, calls a tool, or has ended."""

    def choose(state: State) -> str:
        work = state["_agents"][agent]
        return "end" if work["ended"] else "call" if work["calls"] else "turn"

    return choose


def take_turn(
    act: Callable[..., tuple[str, list[dict[str, Any]]]],
    state: State,
    agent: str,
    *,
    tools: Sequence[dict[str, Any]],
    max_turns: int,
    schema: Any = None,
    at_end: str = "return_last",
    key: str = "",
    memory: str = "",
    retries: int = 0,
    allow_empty: bool = False,
    **settings: Any,
) -> Update:
    """One turn of an agent: call its model, which answers or requests tool calls.

    A reply with neither text nor calls is a failure, which is retried up to `retries` times.
    """
    work = state["_agents"][agent]
    if work["turn"] >= max_turns:
        message = f"{agent} did not finish within {max_turns} turns."
        if at_end == "fail":
            raise RuntimeError(message)
        if at_end == "flag":
            warnings.warn(message, stacklevel=2)
        if not work["last_text"] and not allow_empty:
            raise RuntimeError(f"{agent} ended without a text.")
        return end_agent(state, agent, work, "max_turns", work["last_text"] or None, key, memory)
    text, calls = act(work["messages"], node=agent, tools=tools, **settings)
    if not calls and not text.strip() and not allow_empty:
        if work["empty"] >= retries:
            raise RuntimeError(f"The reply of {agent}'s model is empty.")
        again = {"role": "user", "content": "You said nothing. Answer, or call a tool."}
        work = {**work, "empty": work["empty"] + 1, "messages": [*work["messages"], again]}
        return {"_agents": {agent: work}}
    said: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        said["tool_calls"] = calls
    messages = [*work["messages"], said]
    last_text = text if text.strip() else work["last_text"]
    turn = work["turn"] + 1
    work = {
        **work, "messages": messages, "turn": turn, "calls": calls, "made": 0, "said": text, "last_text": last_text
    }  # fmt: skip
    if calls:
        return {"_agents": {agent: work}}
    try:
        answer = text if schema is None else read_reply(text, schema)
        return end_agent(state, agent, work, "finished", answer, key, memory)
    except ValueError as error:
        again = f"That could not be read: {error} Answer again, with the JSON alone."
    return {"_agents": {agent: {**work, "messages": [*messages, {"role": "user", "content": again}]}}}


def call_tool(
    state: State,
    agent: str,
    functions: Mapping[str, Callable[..., Any]],
    *,
    names: Sequence[str],
    require_approval: Mapping[str, Any] | None = None,
    schema: Any = None,
    key: str = "",
    loop: str = "",
    memory: str = "",
    allow_empty: bool = False,
) -> Update:
    """Make the next tool call that an agent requested. Errors are reported to its model."""
    work = state["_agents"][agent]
    call, *later = work["calls"]
    name, arguments = call["name"], call["args"]
    result, error = None, ""
    if work["made"] >= 20:
        error = "Not made: at most 20 tools are called in one turn."
    elif name not in names:
        error = f'There is no tool "{name}". The tools are: {", ".join(names)}.'
    elif name == "finish":
        result, error = final_answer(arguments, schema, allow_empty=allow_empty)
    elif name in (require_approval or {}):
        question = f'May the tool "{name}" be called with these arguments?'
        asked = {"node": agent, "message": question, "value": arguments, "choices": ["approve", "reject"]}
        answer = ask_for_approval(asked, (require_approval or {})[name])
        if answer["choice"] != "approve":
            reason = " ".join(part for part in ("A person refused this call.", answer.get("comment")) if part)
            error = f"{reason} Do without it, or do it differently."
        elif answer.get("value") is not None:
            arguments = answer["value"]
    if not error and name == "ask_person":
        answer = interrupt({"node": agent, "message": arguments.get("question", ""), "value": None, "choices": []})
        result = "\n".join(part for part in (to_text(answer.get("value")), answer.get("comment", "")) if part)
    elif not error and name not in {"finish", "exit_loop"}:
        try:
            result = functions[name](**arguments)
        except Exception as failure:
            error = str(failure)
    content = f"Error: {error}" if error else to_text(result)[:50_000] or "(nothing)"
    step = {
        "turn": work["turn"], "thought": work["said"], "tool": name, "arguments": arguments, "result": result,
        "error": error,
    }  # fmt: skip
    messages = [*work["messages"], {"role": "tool", "content": content, "tool_call_id": call["id"]}]
    steps = [*work["steps"], step]
    work = {**work, "messages": messages, "calls": later, "made": work["made"] + 1, "steps": steps}
    if not error and name == "finish":
        return end_agent(state, agent, work, "finished", result, key, memory)
    if not error and name == "exit_loop":
        ended = {**work, "ended": True}
        return {**exit_loop(state, agent, loop, {"steps": steps, "status": "exited_loop"}), "_agents": {agent: ended}}
    return {"_agents": {agent: work}}


def final_answer(arguments: Mapping[str, Any], schema: Any, *, allow_empty: bool) -> tuple[Any, str]:
    """The final answer in a call of `finish`, and its error."""
    if "answer" not in arguments:
        return None, '"answer" is missing. Call it again with the final answer.'
    answer = arguments["answer"]
    if schema is None:
        text = to_text(answer)
        is_missing = not text.strip() and not allow_empty
        return text, '"answer" is empty. Call it again with the final answer.' if is_missing else ""
    try:
        return read_answer(answer, schema), ""
    except ValueError as error:
        return None, f"The answer does not follow its schema: {error} Correct it."


def end_agent(
    state: State, agent: str, work: dict[str, Any], status: str, output: Any, key: str, memory: str
) -> Update:
    """End an agent with an output."""
    update = node_outputs(agent, {"output": output, "steps": work["steps"], "status": status}, key)
    if memory:
        update = with_memory(update, state, memory, work["asked"], work["said"], output)
    return {**update, "_agents": {agent: {**work, "ended": True}}}
