"""The loop and iteration of a run that the window displays. Independent of widgets."""

from __future__ import annotations

from app.history.loop_path import loops_of
from app.runs.loop_status import body_outputs, loop_explanation, unit_of
from app.runs.run_view_model import NO_LOOP
from app.session import Session
from engine.document.model import Workflow
from engine.nodes.loop_config import LoopConfig
from engine.nodes.pairs import PAIR_BY_START
from engine.run_state.state import LoopExecution
from engine.store.stopping import loop_config
from engine.values import Value

NO_LOOP_THERE = "This workflow has no loop. Add “Loop and Exit” to the canvas to repeat steps."
NO_RUN = "No iterations yet. Run the workflow to see one row for each iteration of its loop."


class LookedAt:
    """The displayed loop: the selected one, the one around the selection, or the first of the document.

    Args:
        session: The document with its run.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._wanted = ""

    @property
    def loop_id(self) -> str:
        """The loop; empty if there is no run or no loop."""
        picture, workflow = self._session.shown.picture, self._session.shown.workflow
        if picture is None or workflow is None:
            return ""
        node = workflow.nodes_by_id.get(self._wanted)
        if node is not None and node.type in PAIR_BY_START:
            return node.id
        outer = loops_of(workflow, picture.parents, None)
        return outer[0][0] if outer else ""

    @property
    def loop(self) -> LoopExecution:
        """The run of the loop in the selected iterations of its outer loops."""
        picture, loop_id = self._session.shown.picture, self.loop_id
        return NO_LOOP if picture is None or not loop_id else picture.loop(loop_id, self._session.shown.chosen)

    @property
    def index(self) -> int:
        """Index of the iteration; -1 if none has started."""
        picture = self._session.shown.picture
        if picture is None or self.loop.current < 0:
            return -1
        return picture.index_of(self.loop_id, self._session.shown.chosen)

    @property
    def config(self) -> LoopConfig:
        """The settings of the loop as it ran."""
        return loop_config(self._session.shown.workflow or Workflow(), self.loop_id, self.loop.total or None)

    @property
    def unit(self) -> str:
        """`item` for an iterator, `iteration` for a loop."""
        return unit_of(self._session.shown.workflow or Workflow(), self.loop_id)

    @property
    def path(self) -> str:
        """Path of the loop run: `loop`, `outer[1].inner`."""
        picture = self._session.shown.picture
        return "" if picture is None else picture.path_of(self.loop_id, self._session.shown.chosen)

    @property
    def place(self) -> str:
        """Path of the iteration, such as `outer[1].inner[0]`; empty if none has started."""
        return f"{self.path}[{self.index}]" if self.index >= 0 else ""

    def loop_explanation(self, similarity: float | None = None) -> str:
        """Why it stopped, or how far it has come.

        Args:
            similarity: Of its last two results, from 0 to 1; None where it is not known.
        """
        picture, workflow = self._session.shown.picture, self._session.shown.workflow
        if picture is None or workflow is None:
            return ""
        return loop_explanation(
            workflow, picture, self._session.registry, self._session.shown.chosen, self.loop_id, similarity
        )

    def given(self, index: int) -> dict[str, Value]:
        """Return the outputs of the loop body in an iteration, if an expression needs them."""
        picture, workflow = self._session.shown.picture, self._session.shown.workflow
        if picture is None or workflow is None or not self.config.names_nodes:
            return {}
        return body_outputs(workflow, picture, self._session.registry, self.loop_id, f"{self.path}[{index}]")

    @property
    def is_over(self) -> bool:
        """Whether the loop has ended."""
        picture = self._session.shown.picture
        return bool(self.loop.exit_reason) or picture is None or picture.is_over

    def choose(self, loop_id: str) -> None:
        """Select a loop."""
        self._wanted = loop_id

    def follow_selection(self) -> None:
        """Follow the selection: its loop or the loop around it; otherwise keep the current one."""
        picture, workflow = self._session.shown.picture, self._session.shown.workflow
        if picture is None or workflow is None:
            return
        for node_id in self._session.selection:
            node = workflow.nodes_by_id.get(node_id)
            loop_id = node_id if node is not None and node.type in PAIR_BY_START else picture.parents.get(node_id)
            if loop_id is not None:
                self._wanted = loop_id
                return

    def is_touched(self, touched: set[str]) -> bool:
        """Return whether events of these nodes affect the loop."""
        picture, loop_id = self._session.shown.picture, self.loop_id
        if picture is None or not loop_id:
            return False
        return loop_id in touched or any(picture.parents.get(node) == loop_id for node in touched)

    def nothing(self) -> str:
        """Return why there are no iterations and what to do."""
        picture, workflow = self._session.shown.picture, self._session.shown.workflow or self._session.workflow
        if not any(node.type in PAIR_BY_START for node in workflow.nodes):
            return NO_LOOP_THERE
        if picture is None:
            return NO_RUN
        if self.loop.exit_reason:
            return self.loop_explanation()
        if self.unit == "item":
            return "There were no items." if picture.is_over else "No item has started yet."
        return "The loop had no iterations." if picture.is_over else "The loop has not started yet."
