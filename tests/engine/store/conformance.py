"""Conformance suite of stores, as a reusable test class.

To test a store of your own, subclass `StoreConformance` in a test module and give it a fixture `store`:

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def store(self) -> Iterator[Store]:
            with closing(MyStore()) as store:
                yield store

Each test gets a new, empty store.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from engine import events
from engine.errors import EngineError
from engine.models.protocol import Finish, Reply, Usage
from engine.nodes.context import Answer
from engine.plan.partial_run import Extent, Part
from engine.run_state.reducer import reduce_events
from engine.run_state.state import Detail
from engine.runner.run_storage import PostedAnswer
from engine.store.store_protocol import RunFilter, RunStatus, Store, StoreError
from tests.engine.store.memory_store import truncate_event
from tests.engine.store.run_samples import (
    call,
    complete_run,
    completed,
    end,
    head,
    iteration,
    node,
    started,
    store_run,
    write_all,
)
from tests.engine.store.strategies import REPLIES, logs
from tests.examples import examples

_NUMBERS = itertools.count()
"""Numbers of runs, so that each example has a run id of its own."""

# All examples go into one store, one after the other, each as a run of its own; every store takes its own examples.
_FINE = (HealthCheck.function_scoped_fixture, HealthCheck.differing_executors, HealthCheck.too_slow)
_ONE_STORE = examples(25, suppress_health_check=_FINE)


class StoreConformance:
    """The tests; a subclass has the fixture `store`."""

    @pytest.fixture
    def store(self) -> Iterator[Store]:
        raise NotImplementedError

    # What is written comes back.

    def test_run_is_read_as_written(self, store: Store):
        log = complete_run("a")
        run_head = head("a", document='{"é": 1}', options={"budget_usd": 1.5}, source="/x/refine.loop.json")
        store_run(store, run_head, log)
        assert list(store.events("a")) == log
        assert store.document("a") == '{"é": 1}'
        assert store.options("a") == {"budget_usd": 1.5}
        assert store.find("a").source == "/x/refine.loop.json"

    @_ONE_STORE
    @given(data=st.data())
    def test_any_events_are_read_as_written_and_reduce_to_the_summary(self, store: Store, data: st.DataObject):
        run_id = f"run{next(_NUMBERS)}"
        log = data.draw(logs(run_id))
        store_run(store, head(run_id), log)
        assert list(store.events(run_id)) == log
        state = reduce_events(log, run_id, Detail.SUMMARY)
        stored = store.find(run_id)
        assert (stored.workflow, stored.models, stored.error) == (state.workflow, state.models, state.error)
        assert (stored.iterations, stored.exit_reason) == (state.completed_iterations, state.exit_reason)
        assert stored.tokens == state.usage.total_tokens
        assert (stored.cost_usd, stored.duration_s) == (state.cost_usd, state.duration_s)
        stays = state.status not in {RunStatus.RUNNING, RunStatus.PAUSED}
        assert stored.status is (state.status if stays else RunStatus.INTERRUPTED)

    @pytest.mark.parametrize(
        "text",
        [
            "\ud83d",
            "\ud83d\ude00",
            "a\0b",
            "😀" * 40,
            "שלום עולם " * 20,
            "\u202etxt.exe",
            "\r\n\t",
            "x" * 63 + "é",
            "$",
        ],
    )
    def test_any_text_is_read_as_written(self, store: Store, text: str):
        log = [node("a", 0, "x", text), node("a", 1, "y", text * 200), node("a", 2, "z", {text: [text * 9]})]
        store_run(store, head("a", document=text, source=text), log)
        assert list(store.events("a")) == log
        assert store.document("a") == text
        assert store.find("a").source == text

    @pytest.mark.parametrize(
        "value",
        [
            {"$": 1},
            {"$": -1},
            {"$": []},
            {"$": [["a", 1]]},
            {"$": {"$": 5}},
            [{"$": "x" * 100}],
            {"$" + "x" * 100: 1},
            {"\ud83d\ude00": 1, "😀": 2},
        ],
    )
    def test_values_like_internal_marks_are_read_as_written(self, store: Store, value: Any):
        log = [node("a", 0, "x", value), node("a", 1, "y", [value] * 200)]
        store_run(store, head("a"), log)
        assert list(store.events("a")) == log

    def test_deeply_nested_values_are_read_as_written(self, store: Store):
        deep: Any = "core"
        for level in range(499):
            deep = [deep] if level % 2 else {"in": deep}
        store_run(store, head("a"), [node("a", 0, "x", deep)])
        (event,) = store.events("a")
        assert event == node("a", 0, "x", deep)

    def test_large_numbers_keep_type_and_value(self, store: Store):
        numbers = [10**80, -(2**63), 1, 1.0, -0.0, 1e300, 5e-324, True]
        store_run(store, head("a"), [node("a", 0, "x", numbers)])
        (event,) = store.events("a")
        assert isinstance(event, events.NodeCompleted)
        assert [repr(number) for number in event.outputs["output"]] == [repr(number) for number in numbers]  # type: ignore[union-attr]

    def test_growing_texts_are_read_as_written(self, store: Store):
        log, text = [], "Task: refine.\n"
        for index in range(60):
            text += f"\n---\nremark {index}: " + chr(97 + index % 26) * 90
            prompt = f"Improve this, please:\n{text}\nAnswer with the text only, and nothing else at all."
            log.append(node("a", index, f"loop[{index}].draft", text, calls=(call(prompt, text[-300:]),)))
        store_run(store, head("a"), log)
        assert list(store.events("a")) == log
        assert list(store.events("a", after=58)) == log[59:]

    def test_growing_lists_are_read_as_written(self, store: Store):
        items: list[Any] = []
        log = []
        for index in range(40):
            items = [*items, {"index": index, "result": "r" * index, "inner": {"$": index}}]
            log.append(node("a", index, f"loop[{index}].collect", items))
        store_run(store, head("a"), log)
        assert list(store.events("a")) == log

    # What is read of a run.

    def _nested(self, store: Store) -> list[events.AnyEvent]:
        log = [
            started("a"),
            node("a", 1, "before", "b"),
            node("a", 2, "outer[0].draft", "d"),
            node("a", 4, "outer[0].inner[0].deep", "e"),
            iteration("a", 5, 0, "outer[0].inner"),
            iteration("a", 6, 0, "outer"),
            node("a", 8, "outer[10].draft", "f"),
            completed("a", 9),
        ]
        store_run(store, head("a"), log)
        return log

    @pytest.mark.parametrize(
        ("level", "seqs"),
        [("", [0, 1, 6, 9]), ("outer[0]", [2, 5]), ("outer[0].inner[0]", [4]), ("outer[10]", [8]), ("outer[1]", [])],
    )
    def test_level_has_only_events_directly_on_it(self, store: Store, level: str, seqs: list[int]):
        self._nested(store)
        assert [event.seq for event in store.events("a", level=level)] == seqs

    def test_events_are_filtered_by_type_and_number(self, store: Store):
        log = self._nested(store)
        kinds = {events.NodeCompleted, events.RunStarted}
        assert list(store.events("a", kinds=kinds)) == [log[0], log[1], log[2], log[3], log[6]]
        assert list(store.events("a", kinds=kinds, after=4)) == [log[6]]
        assert list(store.events("a", kinds=kinds, level="")) == log[:2]
        assert list(store.events("a", kinds=set())) == []

    def test_preview_truncates_texts_and_json(self, store: Store):
        value = {"b": ["😀" * 100, "x" * 1000], "a": 1}
        log = [
            node("a", 0, "x", "short"),
            node("a", 1, "x", "é" * 5000),
            node("a", 2, "x", value),
            node("a", 3, "x", ["tiny"], calls=(call("p" * 900, "r" * 901),)),
            iteration("a", 4, 0, result="y" * 20 + "z", input="y" * 20, reason="w" * 500, warnings=("v" * 90,)),
        ]
        store_run(store, head("a"), log)
        one, two, three, four, five = (event for event in store.events("a", preview=20))
        assert one == log[0]
        assert two.outputs == {"output": "é" * 20 + "…"}  # type: ignore[union-attr]
        assert three.outputs == {"output": '{"a":1,"b":["' + "😀" * 7 + "…"}  # type: ignore[union-attr]
        assert four == node("a", 3, "x", ["tiny"], calls=(call("p" * 20 + "…", "r" * 20 + "…"),))
        assert (five.result, five.input) == ("y" * 20 + "…", "y" * 20)  # type: ignore[union-attr]
        assert (five.reason, five.warnings) == ("w" * 20 + "…", ("v" * 20 + "…",))  # type: ignore[union-attr]

    @_ONE_STORE
    @given(data=st.data(), limit=st.integers(1, 80))
    def test_preview_equals_truncated_event(self, store: Store, data: st.DataObject, limit: int):
        run_id = f"run{next(_NUMBERS)}"
        log = data.draw(logs(run_id))
        store_run(store, head(run_id), log)
        assert list(store.events(run_id, preview=limit)) == [truncate_event(event, limit) for event in log]

    def test_events_can_be_read_during_the_run(self, store: Store):
        journal = store_run(store, head("a"), [started("a")], close=False)
        reading = store.events("a")
        assert next(reading) == started("a")
        journal.write(node("a", 1, "x", "y"))
        end(store, journal)
        assert [event.seq for event in store.events("a")] == [0, 1]

    def test_missing_run_is_reported(self, store: Store):
        for ask in (store.find, store.events, store.document, store.options, store.reopen):
            with pytest.raises(StoreError, match='There is no run "nope"'):
                ask("nope")
        with pytest.raises(StoreError, match='There is no run "nope"'):
            store.pin("nope", pinned=True)
        with pytest.raises(StoreError, match='There is no run "nope"'):
            store.delete(["nope"])

    # Lists of runs.

    def test_runs_are_listed_newest_first_with_summaries(self, store: Store):
        store_run(store, head("a"), complete_run("a", 1000))
        store_run(store, head("c", parent="a", forked_at="loop[0]"), complete_run("c", 3000))
        store_run(store, head("b"), [started("b", 2000), node("b", 1, "x", "y", cost_usd=None)])
        newest, middle, oldest = store.runs()
        assert [newest.run_id, middle.run_id, oldest.run_id] == ["c", "b", "a"]
        assert (newest.parent, newest.forked_at) == ("a", "loop[0]")
        assert (middle.status, middle.cost_usd, middle.tokens) == (RunStatus.INTERRUPTED, None, 14)
        assert (oldest.status, oldest.workflow, oldest.models) == (RunStatus.COMPLETED, "Refine", ("m",))
        assert (oldest.started, oldest.updated, oldest.duration_s) == (1000, 1009, 9.0)
        assert (oldest.iterations, oldest.exit_reason) == (1, "max_iterations")
        assert (oldest.tokens, oldest.cost_usd, oldest.error, oldest.pinned) == (42, 0.5, "", False)
        assert oldest.size > 0
        assert [summary.run_id for summary in store.runs(limit=1, offset=1)] == ["b"]
        assert store.children("a") == [newest]

    @pytest.mark.parametrize("node", ["draft", "d" * 200, "\ud800"])
    def test_summary_says_which_part_ran(self, store: Store, node: str):
        store_run(store, head("a"), [started("a", 1000)])
        store_run(store, head("b"), [started("b", 2000, extent="until", target=node)])
        part, whole = store.runs()
        assert (part.part, part.is_fork) == (Part(Extent.UNTIL, node), False)
        assert (whole.part, whole.is_fork) == (None, False)
        assert store.find("b") == part
        store_run(store, head("c", parent="b", forked_at="x"), [started("c", 3000, extent="until", target=node)])
        assert store.find("c").is_fork

    def test_runs_are_filtered(self, store: Store):
        store_run(store, head("a", source="/x/Übung.loop.json"), complete_run("a", 1000))
        store_run(store, head("b"), [started("b", 2000, workflow="STRASSE")])
        failed = events.RunFailed("c", 1, 3001, "", "Broken.", "Mend it.", "draft", {}, Usage(), 0.0, 1.0)
        store_run(store, head("c", parent="a"), [started("c", 3000), failed])
        store.pin("c", pinned=True)

        def ids(**fields: Any) -> list[str]:
            return [summary.run_id for summary in store.runs(RunFilter(**fields))]

        assert ids() == ["c", "b", "a"]
        assert ids(workflow="übung") == ["a"]
        assert ids(workflow="straße") == ["b"]
        assert ids(source="/x/Übung.loop.json") == ["a"]
        assert ids(source="/x/übung.loop.json") == ids(source="Übung") == []
        assert ids(workflow="efin") == ["c", "a"]
        assert ids(workflow="100%") == []
        assert ids(statuses=frozenset({RunStatus.INTERRUPTED, RunStatus.FAILED})) == ["c", "b"]
        assert ids(since=2000) == ["c", "b"]
        assert ids(until=2000) == ["a"]
        assert ids(since=1500, until=2500) == ["b"]
        assert ids(parent="a") == ids(pinned=True) == ["c"]
        assert ids(strategy="tool_calling") == []
        log = dataclasses.replace(started("d", 500), strategies=("tool_calling", "single_call"))
        store_run(store, head("d"), [log])
        assert ids(strategy="single_call") == ids(strategy="tool_calling", until=600) == ["d"]
        assert ids(strategy="single") == []
        assert store.totals(RunFilter(strategy="single_call")).count == 1
        assert store.find("c").error == "Broken."

    def test_totals_say_whether_prices_are_missing(self, store: Store):
        assert dataclasses.astuple(store.totals()) == (0, 0, 0.0, False)
        store_run(store, head("a"), complete_run("a"))
        assert dataclasses.astuple(store.totals()) == (1, 42, 0.5, False)
        store_run(store, head("b"), [started("b"), node("b", 1, "x", "y", cost_usd=None)])
        assert dataclasses.astuple(store.totals()) == (2, 56, 0.5, True)
        assert store.totals(RunFilter(statuses=frozenset({RunStatus.COMPLETED}))).count == 1

    def test_run_is_found_by_id_prefix(self, store: Store):
        for run_id in ("abc1", "abd2", "abc"):
            store_run(store, head(run_id), [started(run_id)])
        assert store.find("abd").run_id == "abd2"
        assert store.find("abc").run_id == "abc", "a whole id is no prefix"
        with pytest.raises(StoreError, match="Several runs begin with") as caught:
            store.find("ab")
        assert all(run_id in str(caught.value) for run_id in ("abc1", "abd2"))
        for nothing in ("", "abcd", "%", "a_c"):
            with pytest.raises(StoreError, match="There is no run"):
                store.find(nothing)

    # How runs stand.

    def test_status_follows_pause_resume_and_completion(self, store: Store):
        journal = store_run(store, head("a"), [started("a")], close=False)
        seen = [store.find("a").status]
        for event in (events.RunPaused("a", 1, 1001, ""), events.RunResumed("a", 2, 1002, ""), completed("a", 3)):
            write_all(journal, [event])
            seen.append(store.find("a").status)
        assert seen == [RunStatus.RUNNING, RunStatus.PAUSED, RunStatus.RUNNING, RunStatus.COMPLETED]
        end(store, journal)
        assert store.find("a").status is RunStatus.COMPLETED

    def test_run_whose_journal_is_closed_early_is_interrupted(self, store: Store):
        store_run(store, head("a"), [started("a"), events.RunPaused("a", 1, 1001, "")])
        assert store.find("a").status is RunStatus.INTERRUPTED

    def test_run_can_be_continued(self, store: Store):
        failed = events.RunFailed("a", 1, 1001, "", "Broken.", "Mend it.", "draft", {}, Usage(1, 1), 0.25, 1.0)
        store_run(store, head("a"), [started("a"), failed])
        assert store.find("a").status is RunStatus.FAILED
        journal = store.reopen("a")
        write_all(journal, [events.RunResumed("a", 2, 1002, ""), node("a", 3, "x", "y")])
        going_on = store.find("a")
        assert (going_on.status, going_on.error, going_on.duration_s) == (RunStatus.RUNNING, "", None)
        assert (going_on.tokens, going_on.cost_usd) == (16, 0.375)
        write_all(journal, [completed("a", 4)])
        end(store, journal)
        assert [event.seq for event in store.events("a")] == [0, 1, 2, 3, 4]
        assert store.find("a").status is RunStatus.COMPLETED

    def test_run_with_two_questions_waits_until_both_are_answered(self, store: Store):
        def asked(seq: int, path: str) -> events.AnyEvent:
            return events.NodeWaiting("a", seq, 1000.0 + seq, path, "approval", "approval", "?", None, ("approve",))

        store_run(store, head("a"), [started("a"), asked(1, "one"), asked(2, "loop[0].two")])
        seen = [store.find("a").status]
        for seq, path in ((3, "one"), (4, "loop[0].two")):
            journal = store.reopen("a")
            write_all(journal, [events.NodeAnswered("a", seq, 1000.0 + seq, path, "approve", None, "")])
            end(store, journal)
            seen.append(store.find("a").status)
        assert seen == [RunStatus.WAITING, RunStatus.WAITING, RunStatus.INTERRUPTED]

    def test_continued_run_with_an_open_question_asks_again(self, store: Store):
        asked = events.NodeWaiting("a", 1, 1001.0, "one", "approval", "approval", "?", None, ("approve",))
        store_run(store, head("a"), [started("a"), asked])
        journal = store.reopen("a")
        write_all(journal, [events.RunResumed("a", 2, 1002, "")])
        assert store.find("a").status is RunStatus.RUNNING
        end(store, journal)

    def test_running_run_has_one_owner(self, store: Store):
        journal = store_run(store, head("a"), [started("a")], close=False)
        with pytest.raises(EngineError, match="running"):
            store.reopen("a")
        with pytest.raises(EngineError, match="already"):
            store.begin(head("a"))
        end(store, journal)
        end(store, store.reopen("a"))

    def test_run_is_owned_while_it_runs_or_waits(self, store: Store):
        asked = events.NodeWaiting("a", 1, 1001.0, "one", "approval", "approval", "?", None, ("approve",))
        journal = store_run(store, head("a"), [started("a"), asked], close=False)
        assert (store.find("a").status, store.is_owned("a")) == (RunStatus.WAITING, True)
        end(store, journal)
        assert (store.find("a").status, store.is_owned("a")) == (RunStatus.WAITING, False)
        with pytest.raises(EngineError, match="no run"):
            store.is_owned("b")

    def test_pending_answer_stays_until_withdrawn_and_the_first_wins(self, store: Store):
        store_run(store, head("a"), [started("a")])
        store_run(store, head("b"), [started("b")])
        first = PostedAnswer("loop[0].ask", 7, Answer("approve", {"text": "\ud83d"}, "Good."))
        store.post_answer("a", first)
        store.post_answer("a", PostedAnswer("ask", 9, Answer()))
        with pytest.raises(StoreError, match="was already answered"):
            store.post_answer("a", PostedAnswer("loop[0].ask", 7, Answer("reject")))
        assert list(store.pending_answers("a")) == [first, PostedAnswer("ask", 9, Answer())]
        assert list(store.pending_answers("b")) == []
        store.withdraw_answer("a", 7)
        store.withdraw_answer("a", 7)
        assert [left.question for left in store.pending_answers("a")] == [9]
        store.delete(["a"])
        with pytest.raises(StoreError, match="no run"):
            store.post_answer("a", first)

    def test_events_are_acknowledged_in_order(self, store: Store):
        journal = store.begin(head("a"))
        watcher = write_all(journal, [node("a", seq, "x", "y") for seq in range(0, 300, 3)])
        end(store, journal)
        assert watcher.kept == sorted(set(watcher.kept))
        assert watcher.kept[-1] == 297

    # Bringing in, deleting, pinning, limits.

    def test_run_is_imported(self, store: Store):
        log = complete_run("a")
        assert store.import_run(head("a", source="s"), iter(log)) == "a"
        assert list(store.events("a")) == log
        assert store.find("a").status is RunStatus.COMPLETED
        again = store.import_run(head("a"), iter(log))
        assert again != "a"
        assert [dataclasses.replace(event, run_id="a") for event in store.events(again)] == log
        assert {event.run_id for event in store.events(again)} == {again}

    def test_failed_import_leaves_nothing(self, store: Store):
        def broken() -> Iterator[events.AnyEvent]:
            yield started("a")
            raise ValueError("not JSON")

        with pytest.raises(ValueError, match="not JSON"):
            store.import_run(head("a"), broken())
        assert store.runs() == []

    def test_deleted_runs_are_gone_and_others_complete(self, store: Store):
        shared = "shared " * 500
        for run_id in ("a", "b", "c"):
            store_run(store, head(run_id), [started(run_id), node(run_id, 1, "x", shared + run_id * 300)])
        store.delete(["a", "c", "a"])
        assert [summary.run_id for summary in store.runs()] == ["b"]
        assert list(store.events("b")) == [started("b"), node("b", 1, "x", shared + "b" * 300)]
        store.delete([])

    def test_running_run_cannot_be_deleted(self, store: Store):
        store_run(store, head("b"), complete_run("b"))
        journal = store_run(store, head("a"), [started("a")], close=False)
        with pytest.raises(StoreError, match="running"):
            store.delete(["b", "a"])
        assert store.totals().count == 2
        end(store, journal)
        store.delete(["a"])

    def test_runs_of_an_unsaved_document_get_its_file(self, store: Store):
        for run_id, source in (("a", ""), ("b", "/old.loop.json"), ("c", "")):
            store_run(store, head(run_id, source=source), complete_run(run_id))
        store.set_source(["a", "b", "deleted"], "/Ünew.loop.json")
        assert [store.find(run_id).source for run_id in "abc"] == ["/Ünew.loop.json", "/old.loop.json", ""]
        assert [run.run_id for run in store.runs(RunFilter(source="/Ünew.loop.json"))] == ["a"]
        assert [run.run_id for run in store.runs(RunFilter(workflow="ünew"))] == ["a"]
        assert [run.run_id for run in store.runs(RunFilter(workflow="old.loop"))] == ["b"]

    def test_running_run_of_an_unsaved_document_gets_its_file(self, store: Store):
        log = complete_run("a")
        journal = store_run(store, head("a"), log[:1], close=False)
        store.set_source(["a"], "/new.loop.json")
        write_all(journal, log[1:])
        end(store, journal)
        assert [run.source for run in store.runs(RunFilter(workflow="new.loop"))] == ["/new.loop.json"]

    def test_retention_by_count_deletes_the_oldest_runs(self, store: Store):
        for number, run_id in enumerate("abcde"):
            store_run(store, head(run_id), complete_run(run_id, 1000.0 + number))
        store.pin("a", pinned=True)
        journal = store_run(store, head("z"), [started("z", 500)], close=False)
        assert store.retain(most_runs=4, most_bytes=None) == 2
        assert [summary.run_id for summary in store.runs()] == ["e", "d", "a", "z"]
        assert store.retain(most_runs=4, most_bytes=None) == 0
        store.pin("a", pinned=False)
        assert store.retain(most_runs=1, most_bytes=None) == 3
        end(store, journal)
        assert [summary.run_id for summary in store.runs()] == ["z"]

    def test_retention_by_size_deletes_the_oldest_runs(self, store: Store):
        for number, run_id in enumerate("abc"):
            noise = "".join(str(hash((run_id, place))) for place in range(40_000))
            store_run(store, head(run_id), [started(run_id, 1000.0 + number), node(run_id, 1, "x", noise)])
        per_run = store.find("c").size
        before = store.size()
        assert store.retain(most_runs=None, most_bytes=int(per_run * 2.6) + 100_000) == 1
        assert [summary.run_id for summary in store.runs()] == ["c", "b"]
        assert store.size() < before - per_run / 2
        assert store.retain(most_runs=None, most_bytes=1) == 2

    # Replies for other runs.

    @_ONE_STORE
    @given(reply=REPLIES)
    def test_replies_are_cached_as_written(self, store: Store, reply: Reply):
        run_id = f"c{store.totals().count}"
        store_run(store, head(run_id), complete_run(run_id))
        store.cache_reply(f"key of {run_id}", run_id, reply)
        store.pin(run_id, pinned=False)  # whatever comes after it finds it
        assert store.cached_reply(f"key of {run_id}") == reply

    def test_cached_replies_last_as_long_as_their_run(self, store: Store):
        store_run(store, head("a"), complete_run("a"))
        reply = Reply("yes " * 100, Finish.STOP, Usage(1, 2), "m", None)
        store.cache_reply("key", "a", reply)
        store.cache_reply("other", "nobody", reply)
        store.pin("a", pinned=True)
        assert store.cached_reply("key") == reply
        assert [store.cached_reply(key) for key in ("other", "none")] == [None, None]
        store.delete(["a"])
        assert store.cached_reply("key") is None

    def test_closed_store_accepts_nothing(self, store: Store):
        store.close()
        store.close()
        with pytest.raises(EngineError, match="closed"):
            store.begin(head("a"))
