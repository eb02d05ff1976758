"""Which loop of a document's run is looked at, and which iteration of it. No widgets here."""

from __future__ import annotations

from app.history.loop_path import loops_of
from app.runs.loop_status import given_in, unit_of, why
from app.runs.run_view_model import NO_LOOP
from app.session import Session
from engine.document.model import Workflow
from engine.nodes.loop_config import LoopConfig
from engine.nodes.pairs import PAIR_BY_START
from engine.run_state.state import LoopExecution
from engine.store.stopping import loop_config
from engine.values import Value

NO_LOOP_THERE = "This workflow has no loop. Put “Loop and Exit” on the canvas to have something done again and again."
NO_RUN = "Run the workflow: each iteration of its loop then has a row here."


class LookedAt:
    """What the panel is about: the selected loop, or the one around what is selected, else the first of the document.

    Args:
        session: The document with its run.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._wanted = ""

    @property
    def loop_id(self) -> str:
        """The loop; empty where there is no run, or no loop in it."""
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
        """Its run, in the iterations of the loops around it that are looked at."""
        picture, loop_id = self._session.shown.picture, self.loop_id
        return NO_LOOP if picture is None or not loop_id else picture.loop(loop_id, self._session.shown.chosen)

    @property
    def index(self) -> int:
        """The iteration; -1 where none has begun."""
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
        """What one pass through its body is called: `item` of an iterator, `iteration` of a loop."""
        return unit_of(self._session.shown.workflow or Workflow(), self.loop_id)

    @property
    def path(self) -> str:
        """The path of its run: `loop`, `outer[1].inner`."""
        picture = self._session.shown.picture
        return "" if picture is None else picture.path_of(self.loop_id, self._session.shown.chosen)

    @property
    def place(self) -> str:
        """The iteration as a place in a run, such as `outer[1].inner[0]`; empty where none has begun."""
        return f"{self.path}[{self.index}]" if self.index >= 0 else ""

    def why(self, similarity: float | None = None) -> str:
        """Why it stopped, or how far it has come.

        Args:
            similarity: Of its last two results, from 0 to 1; None where it is not known.
        """
        picture, workflow = self._session.shown.picture, self._session.shown.workflow
        if picture is None or workflow is None:
            return ""
        return why(workflow, picture, self._session.registry, self._session.shown.chosen, self.loop_id, similarity)

    def given(self, index: int) -> dict[str, Value]:
        """What the nodes of its body gave in an iteration; nothing where no expression asks for it."""
        picture, workflow = self._session.shown.picture, self._session.shown.workflow
        if picture is None or workflow is None or not self.config.until.strip():
            return {}
        return given_in(workflow, picture, self._session.registry, self.loop_id, f"{self.path}[{index}]")

    @property
    def is_over(self) -> bool:
        """Whether nothing more can come to the loop."""
        picture = self._session.shown.picture
        return bool(self.loop.exit_reason) or picture is None or picture.is_over

    def choose(self, loop_id: str) -> None:
        """Look at a loop."""
        self._wanted = loop_id

    def follow_selection(self) -> None:
        """Look at the loop that is selected, or at the one around what is; at the same as before where neither is."""
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
        """Whether events about these nodes concern the loop."""
        picture, loop_id = self._session.shown.picture, self.loop_id
        if picture is None or not loop_id:
            return False
        return loop_id in touched or any(picture.parents.get(node) == loop_id for node in touched)

    def nothing(self) -> str:
        """Why there is no iteration to see, and what to do."""
        picture, workflow = self._session.shown.picture, self._session.shown.workflow or self._session.workflow
        if not any(node.type in PAIR_BY_START for node in workflow.nodes):
            return NO_LOOP_THERE
        if picture is None:
            return NO_RUN
        if self.loop.exit_reason:
            return self.why()
        if self.unit == "item":
            return "There was no item to work on." if picture.is_over else "No item has begun yet."
        return "The loop made no iteration." if picture.is_over else "The loop has not begun yet."
