"""Google ADK: a LoopAgent over three custom agents, its events read, its session in memory."""

from __future__ import annotations

import asyncio

from google.adk.agents import BaseAgent, LoopAgent
from google.adk.events import Event, EventActions
from google.adk.runners import InMemoryRunner
from google.genai import types

from benchmarks.timing import Stopwatch
from benchmarks.work import START, STEPS, step

_NAME = "benchmark"


class _Step(BaseAgent):
    async def _run_async_impl(self, ctx):
        text = step(ctx.session.state["text"])
        yield Event(author=self.name, invocation_id=ctx.invocation_id, actions=EventActions(state_delta={"text": text}))


def run(iterations: int, stopwatch: Stopwatch) -> str:
    """Do the work."""
    return asyncio.run(_run(iterations, stopwatch))


async def _run(iterations: int, stopwatch: Stopwatch) -> str:
    agent = LoopAgent(name="loop", max_iterations=iterations, sub_agents=[_Step(name=name) for name in STEPS])
    runner = InMemoryRunner(agent=agent, app_name=_NAME)
    sessions = runner.session_service
    session = await sessions.create_session(app_name=_NAME, user_id=_NAME, state={"text": START})
    begin = types.Content(role="user", parts=[types.Part(text="begin")])
    events = 0
    with stopwatch.running():
        async for _event in runner.run_async(user_id=_NAME, session_id=session.id, new_message=begin):
            events += 1
    if events != len(STEPS) * iterations:
        raise RuntimeError(f"ADK did {events} steps of {len(STEPS) * iterations}.")
    ended = await sessions.get_session(app_name=_NAME, user_id=_NAME, session_id=session.id)
    return ended.state["text"]
