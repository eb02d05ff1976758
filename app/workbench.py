"""Create the window's parts and controllers, and connect them.

This is the only module that knows all of them. Controllers and panels that the first paint does not need are cached
properties: importing them takes longer than showing the start page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QStackedWidget

from app.controllers.command_controller import CommandController
from app.dialogs import FileDialogs
from app.engine_thread import EngineThread
from app.gallery.gallery import Gallery
from app.history.store_client import StoreClient
from app.settings.preferences import Preferences, follow_reading_mode
from app.theme.style import clear_style_cache
from app.theme.widgets import MessageBars
from app.window.actions import PARTS, ActionStates, WindowMenus, make_actions
from app.window.autosave import default_autosave_folder
from app.window.bottom_panel import BottomPanel
from app.window.document_tabs import DocumentTabs
from app.window.main_window import MainWindow, WindowState, open_files
from app.window.run_bar import RunBar
from app.window.status_bar import StatusBar
from engine.errors import Fix
from engine.settings import budget_limit

if TYPE_CHECKING:
    from app.controllers.close_controller import CloseController
    from app.controllers.desktop_integration import RunNotifier, TaskbarProgress
    from app.controllers.document_controller import DocumentController
    from app.controllers.help_controller import HelpController
    from app.controllers.history_controller import HistoryController
    from app.controllers.key_controller import KeyController
    from app.controllers.partial_run_controller import PartialRunController
    from app.controllers.run_controller import RunBarPresenter, RunController
    from app.inspector.inspector import Inspector
    from app.palette import Palette
    from app.session import Session
    from app.settings.available_models import AvailableModels
    from app.settings.extensions_controller import ExtensionsController
    from app.settings.settings_dialog import SettingsDialog
    from app.window.chat_panel import ChatPanel
    from app.window.document_page import DocumentPage


class Workbench(QObject):
    """The window with everything that belongs to it.

    Args:
        engine: The engine's thread.
        preferences: The user's settings.
        dialogs: Asks for files; the system's dialogs by default.
        data_folder: The folder of autosave files that cannot be written beside their document.
        store: The file of the history; the default one if None. `store_access.open` opens it.

    Attributes:
        is_starting: Whether the documents of the last session are still to be opened, and stay remembered as open.
        is_additional: Whether another window is open, whose documents the next start opens again instead of these.

    Signals:
        finished: The window was closed, and no run continues in the background.
        models_wanted: A document was opened that uses these models.
    """

    finished = Signal()
    models_wanted = Signal(tuple)

    def __init__(
        self,
        engine: EngineThread,
        preferences: Preferences,
        *,
        dialogs: FileDialogs | None = None,
        data_folder: Path | None = None,
        store: Path | None = None,
    ) -> None:
        super().__init__()
        self.engine = engine
        self.preferences = preferences
        engine.models.gguf_settings = lambda: preferences.values.gguf
        self.dialogs = dialogs or FileDialogs()
        self.data_folder = data_folder or default_autosave_folder()
        self.is_starting = False
        self.is_additional = False
        self.actions_by_name = make_actions(self)
        self._action_states = ActionStates(self.actions_by_name)
        self.gallery = Gallery()
        if self.gallery.cards:  # so that Enter opens the first template
            self.gallery.setFocusProxy(self.gallery.cards[0].button)
        self.tabs = DocumentTabs(self.gallery)
        self.inspectors = QStackedWidget()
        self.bottom_panel = BottomPanel({"runs": lambda: self.history.panel})
        self.notices = MessageBars()
        self.run_bar = RunBar(self.actions_by_name)
        self.status_bar = StatusBar()
        self.window = MainWindow(
            run_bar=self.run_bar,
            notices=self.notices,
            tabs=self.tabs,
            inspectors=self.inspectors,
            bottom_panel=self.bottom_panel,
            status_bar=self.status_bar,
            may_close=lambda: self.closing.may_close(),
        )
        self.setParent(self.window)
        self.window.addActions(list(self.actions_by_name.values()))
        self.store_access = StoreClient(store, self.window)
        self.menus = WindowMenus(self.window, self.actions_by_name, self.open_file)
        self.commands = CommandController(
            self.window,
            preferences,
            self.dialogs,
            self.menus,
            lambda: self.current,
            self.open_file,
            self._make_settings,
        )
        self._state = WindowState(preferences, self.window, self.actions_by_name)
        self._connect()
        self._state.restore()
        self._apply_preferences(frozenset({"recent_files", "default_model"}))
        self.show_current()
        self._report_settings(preferences.notice)

    @property
    def current(self) -> DocumentPage | None:
        """The current document; None on the start page."""
        return self.tabs.current

    @property
    def _session(self) -> Session | None:
        return self.current.session if self.current is not None else None

    @cached_property
    def models(self) -> AvailableModels:
        """The models to choose from."""
        from app.settings.available_models import AvailableModels

        models = AvailableModels(self.preferences, self.engine, self.window)
        models.setup_requested.connect(self.commands.set_up_models)
        models.download_requested.connect(self._show_download)
        return models

    @cached_property
    def documents(self) -> DocumentController:
        """Opens and closes documents."""
        from app.controllers.document_controller import DocumentController
        from app.controllers.subflow_controller import SubflowController

        documents = DocumentController(
            self.window,
            self.engine,
            self.preferences,
            self.dialogs,
            self.data_folder,
            self.models,
            self.inspectors,
            self.tabs.stack,
        )
        self.subflows = SubflowController(documents, self.engine)
        documents.opened.connect(self._add_document)
        documents.shown.connect(self.tabs.show_document)
        documents.closed.connect(self._remove_document)
        return documents

    @cached_property
    def history(self) -> HistoryController:
        """Shows, compares, resumes and forks stored runs."""
        from app.controllers.history_controller import HistoryController
        from app.controllers.history_pages import HistoryPages
        from app.controllers.resume_fork_controller import ResumeForkController

        pages = HistoryPages(self.engine, self.store_access, self.documents)
        resuming = ResumeForkController(
            self.window, self.engine, self.preferences, self.store_access, self.documents, pages, self.models
        )
        history = HistoryController(
            self.window,
            self.preferences,
            self.dialogs,
            self.store_access,
            self.notices,
            pages,
            resuming,
            lambda: self.current,
        )
        history.refused.connect(self.status_bar.refuse)
        history.exported.connect(self.status_bar.note)
        history.stored.connect(self.status_bar.note_stored)
        history.list_wanted.connect(lambda: self.bottom_panel.unfold("runs"))
        self.tabs.current_changed.connect(history.drop_shown_offer)
        return history

    @cached_property
    def runs(self) -> RunController:
        """Starts, steps and stops runs."""
        from app.controllers.run_controller import RunController

        runs = RunController(self.window, self.engine, self.preferences, self.dialogs, self.store_access, self.keys)
        runs.run_wanted.connect(self._show_run)
        runs.run_blocked.connect(lambda _document: self.bottom_panel.unfold("problems"))
        return runs

    @cached_property
    def keys(self) -> KeyController:
        """Finds missing keys, and asks for them."""
        from app.controllers.key_controller import KeyController

        return KeyController(self.window, self.engine, self.preferences, self.models)

    @cached_property
    def partial_runs(self) -> PartialRunController:
        """Runs parts of documents."""
        from app.controllers.partial_run_controller import PartialRunController

        return PartialRunController(self.runs, self.store_access, self.keys)

    @cached_property
    def closing(self) -> CloseController:
        """Closes documents and the window."""
        from app.controllers.close_controller import CloseController

        closing = CloseController(self.window, self.documents, self.remember_open)
        closing.finished.connect(self.finished)
        return closing

    @cached_property
    def presenter(self) -> RunBarPresenter:
        """Shows models and budget in the run bar."""
        from app.controllers.run_controller import RunBarPresenter

        return RunBarPresenter(self.run_bar, self.preferences)

    @cached_property
    def notifier(self) -> RunNotifier:
        """Notifies of ended runs and questions while another window is active."""
        from app.controllers.desktop_integration import RunNotifier

        return RunNotifier(self.window, self.preferences, self.window.windowIcon())

    @cached_property
    def taskbar(self) -> TaskbarProgress:
        """Shows the progress of runs in the taskbar."""
        from app.controllers.desktop_integration import TaskbarProgress

        return TaskbarProgress(self.window)

    @cached_property
    def help(self) -> HelpController:
        """Shows the user guide and the tour."""
        from app.controllers.help_controller import HelpController

        return HelpController(
            self.window,
            self.preferences,
            self.tabs,
            self.gallery,
            self.run_bar,
            self.bottom_panel,
            lambda file: self.documents.open_template(file),
            self._show_inspector,
        )

    @cached_property
    def extensions(self) -> ExtensionsController:
        """The user's plugins and MCP servers."""
        from app.settings.extensions_controller import ExtensionsController

        return ExtensionsController(self.engine, self.window)

    @cached_property
    def palette_panel(self) -> Palette:
        """The node palette."""
        from app.palette import Palette
        from engine.nodes.node_registry import builtin_registry

        palette = Palette(builtin_registry())
        palette.setProperty("panel", True)
        palette.template_chosen.connect(lambda file: self.documents.open_template(file))
        palette.node_chosen.connect(self.commands.add_node)
        self.extensions.changed.connect(palette.refresh)
        self.window.install_palette(palette)
        return palette

    def _make_settings(self) -> SettingsDialog:
        from app.settings.settings_dialog import SettingsDialog

        return SettingsDialog(
            self.preferences,
            self.engine,
            self.models,
            self.window,
            history=self.store_access,
            additions=self.extensions,
        )

    def _connect(self) -> None:
        for name, handler in self._handlers().items():
            self.actions_by_name[name].triggered.connect(lambda _checked=False, handler=handler: handler())
        gallery = self.gallery
        gallery.template_chosen.connect(lambda file: self.documents.open_template(file))
        gallery.open_requested.connect(self.actions_by_name["open"].trigger)
        gallery.new_requested.connect(self.actions_by_name["new"].trigger)
        gallery.recent_chosen.connect(self.open_file)
        gallery.models_requested.connect(self.commands.set_up_models)
        self.tabs.current_changed.connect(self.show_current)
        self.tabs.close_requested.connect(lambda document: self.closing.close_document(document))
        self.run_bar.model_clicked.connect(self.commands.set_up_models)
        self.run_bar.budget_clicked.connect(self._with_current(self._show_budget))
        self.status_bar.problems_clicked.connect(lambda: self.bottom_panel.toggle("problems"))
        self.status_bar.failure_clicked.connect(self._with_current(lambda document: document.show_failure()))
        self.status_bar.question_clicked.connect(
            self._with_current(lambda document: document.questions.focus_current())
        )
        self.status_bar.stored_clicked.connect(lambda run_id: self.history.show_in_list(run_id))
        self.bottom_panel.unfolded.connect(lambda _name: self.refresh_actions())
        self.preferences.changed.connect(self._apply_preferences)
        self.preferences.save_failed.connect(self.status_bar.refuse)
        self.commands.exported.connect(self.status_bar.note)
        self.preferences.notice_changed.connect(self._report_settings)
        follow_reading_mode(self.preferences)
        self.window.files_dropped.connect(self.open_dropped)
        self.window.closed.connect(self._finish)

    def _handlers(self) -> dict[str, Callable[[], object]]:
        """What each action does; controllers are created when an action first needs them."""
        panel, tabs, commands = self.bottom_panel, self.tabs, self.commands
        return {
            "new": lambda: self.documents.new(),
            "start_page": tabs.show_start,
            "open": lambda: self.documents.ask_for_files(),
            "save": self._with_current(lambda document: self.documents.files.save(document)),
            "save_as": self._with_current(lambda document: self.documents.files.save_as(document)),
            "revert": self._with_current(lambda document: self.documents.files.revert(document)),
            "import": lambda: self.documents.imports.ask_for_file(),
            **{f"export_{kind}": partial(commands.export_image, kind) for kind in ("png", "svg", "pdf")},
            **{f"export_{kind}": partial(commands.export_program, kind) for kind in ("python", "langgraph")},
            "close": self._with_current(lambda document: self.closing.close_document(document)),
            "quit": self.window.close,
            "undo": self._with_current(lambda document: document.session.undo()),
            "redo": self._with_current(lambda document: document.session.redo()),
            "find_node": commands.find_node,
            "settings": commands.open_settings,
            "show_chat": self._with_current(self._show_chat),
            "show_palette": self.show_current,
            "show_inspector": self.show_current,
            **{f"show_{name}": partial(panel.toggle, name) for name in panel.buttons},
            "next_tab": partial(tabs.step, 1),
            "previous_tab": partial(tabs.step, -1),
            "run": self._with_current(lambda document: self.runs.run(document)),
            "run_with": self._with_current(lambda document: self.runs.run_with(document)),
            "run_batch": self._with_current(lambda document: self.runs.run_batch(document)),
            **{name: self._with_current(partial(self._run_part, name)) for name in PARTS},
            "stop": self._with_current(lambda document: self.runs.stop(document)),
            "pause": self._with_current(self._pause_or_resume),
            "step_node": self._with_current(lambda document: self.runs.step_node(document)),
            "step_iteration": self._with_current(lambda document: self.runs.step_iteration(document)),
            "previous_iteration": self._with_current(lambda document: document.iterations.step(-1)),
            "next_iteration": self._with_current(lambda document: document.iterations.step(1)),
            "latest_iteration": self._with_current(lambda document: document.session.shown.look_at_latest()),
            "compare": self._with_current(
                lambda document: self.history.compare_from(document, document.iterations.detail.place)
            ),
            "fork": self._with_current(
                lambda document: self.history.resuming.fork_from(document, document.iterations.detail.place)
            ),
            "guide": lambda: self.help.show_guide(),
            "tour": lambda: self.help.start_tour(),
            "command_palette": commands.open_command_palette,
            "shortcuts": commands.show_shortcuts,
            "about": commands.show_about,
        }

    def _with_current(self, act: Callable[[DocumentPage], object]) -> Callable[[], object]:
        """Wrap a function of the current document; without one it does nothing."""

        def call() -> object:
            document = self.current
            return act(document) if document is not None else None

        return call

    def show(self) -> None:
        """Show the window."""
        self.window.show()

    def open_file(self, file: Path) -> None:
        """Open a file."""
        self.documents.open_file(file)

    def show_current(self) -> None:
        """Show the current document, or the start page, in all parts of the window."""
        document = self.current
        self.run_bar.show_session(self._session)
        self.status_bar.show_session(self._session)
        with_palette = document is not None and self.actions_by_name["show_palette"].isChecked()
        if with_palette:
            _ = self.palette_panel  # created when it is first shown
        with_inspector = document is not None and self.actions_by_name["show_inspector"].isChecked()
        if document is not None:
            self.window.show_inspector(document.created_inspector)
        self.window.show_side_panels(palette=with_palette, inspector=with_inspector)
        if document is not None:
            self._show_problem_count()
        self.bottom_panel.show_panels(document.panels if document is not None else {})
        self.menus.show_canvas(document.canvas.actions_by_name if document is not None else {})
        self._show_title()
        self.refresh_actions()
        self._show_models_and_budget()

    def refresh_actions(self) -> None:
        """Enable and name all actions after the current document."""
        panels, can_resume = self.bottom_panel.buttons, self.current is not None and self.current.can_resume()
        self._action_states.refresh(self._session, panels, self.bottom_panel.open_panel, can_resume=can_resume)

    def _show_models_and_budget(self) -> None:
        if self._session is None:
            self.run_bar.show_budget(None)
        else:
            self.presenter.show(self._session)
            self.refresh_actions()

    def _show_edit(self, session: Session) -> None:
        self.presenter.show_budget(session)
        self.refresh_actions()

    def _show_problem_count(self) -> None:
        if self.current is not None:
            errors, warnings = self.current.session.problem_counts
            self.bottom_panel.count(errors, warnings)
            self.status_bar.count(errors, warnings)

    def _show_title(self) -> None:
        session = self._session
        if session is None:
            self.window.show_title("", is_modified=False)
        else:
            self.window.show_title(session.name, is_modified=session.is_modified)

    def _pause_or_resume(self, document: DocumentPage) -> None:
        """Pause a run or resume it, also one that was stopped or has failed."""
        if document.can_resume():
            document.resume_wanted.emit()
        else:
            self.runs.toggle_pause(document)

    def _run_part(self, action: str, document: DocumentPage) -> None:
        from engine.plan.partial_run import Extent

        self.partial_runs.run(document, Extent(action.removeprefix("run_")))

    def _show_run(self, run_id: str) -> None:
        """Open a stored run, and bring this window in front of the one where it was chosen."""
        self.history.tabs.open_run(run_id)
        self.window.come_to_front()

    def _report_settings(self, notice: str) -> None:
        if notice:
            self.status_bar.refuse(notice)

    def remember_open(self) -> None:
        """Store which files are open, so that the next start opens them again, also after a crash."""
        if not (self.closing.is_closing or self.is_starting or self.is_additional):
            paths = [document.session.path for document in self.tabs.documents]
            self._state.save([*paths, *self.documents.loading])

    def reopen(self) -> None:
        """Open the files that were open when the program last ended."""
        self.documents.open_files(open_files(self.preferences, self.data_folder))

    def autosave_all(self) -> None:
        """Autosave all unsaved work now, after an internal error."""
        for document in self.documents.all:
            document.autosave.keep_now()

    def open_dropped(self, files: Sequence[Path]) -> None:
        """Open the workflows among dropped files, and the batch window for a table."""
        from engine.batch.read_table import TABLE_SUFFIXES

        tables = [file for file in files if file.suffix.casefold() in TABLE_SUFFIXES]
        self.documents.open_files([file for file in files if file not in tables])
        if not tables:
            return
        if self.current is None:
            self.status_bar.refuse("Open a workflow first. Then drop the table again to run it for each row.")
        elif self.current.session.is_past:
            self.status_bar.refuse("This is a stored run. Choose “Open as new document”, then drop the table again.")
        else:
            self.runs.run_batch(self.current, tables[0])

    def _apply_preferences(self, names: frozenset[str]) -> None:
        if "recent_files" in names:
            files = [Path(file) for file in self.preferences.recent_files]
            self.menus.show_recent(files)
            self.gallery.set_recent(files)
        if "default_model" in names:
            self.gallery.show_model(self.preferences.values.model)
        if names & {"default_model", "budget_usd", "budget_tokens"}:
            self._show_models_and_budget()

    def _finish(self) -> None:
        if not self.closing.background:
            self.finished.emit()

    def _add_document(self, document: DocumentPage) -> None:
        """Add a document that was opened to the window, and show it."""
        session, canvas = document.session, document.canvas
        self.taskbar.follow(session)
        document.inspector_created.connect(partial(self._add_inspector, document))
        document.iterations_created.connect(self._state.share_layout)
        canvas.files_dropped.connect(self.open_dropped)
        canvas.template_dropped.connect(lambda text: self.documents.open_template(Path(text)))
        canvas.popups.run_actions = [self.actions_by_name[name] for name in PARTS]
        canvas.properties_requested.connect(lambda: self._focus_properties(document))
        document.fresh_run_wanted.connect(lambda: self.runs.run(document))
        document.inspector_wanted.connect(self._show_inspector)
        self.history.follow(document)  # first: it knows whether a run that is shown is stored and can be resumed
        self._follow(document)
        if not session.is_past:
            document.chat_created.connect(partial(self._follow_chat, document))
            document.add_chat(self.store_access)
            self.keys.follow(session)
        document.fix_wanted.connect(partial(self._apply_fix, document))
        document.questions.changed.connect(lambda: self.notifier.notify_question(document.session))
        self.tabs.add(document)
        canvas.setFocus()
        self.remember_open()
        self.models_wanted.emit(self.presenter.models(session))

    def _add_inspector(self, document: DocumentPage, inspector: Inspector) -> None:
        self.inspectors.addWidget(inspector)
        self._if_current(document, lambda: self.window.show_inspector(inspector))

    def _follow(self, document: DocumentPage) -> None:
        session, shown = document.session, document.session.shown
        session.analyzed.connect(lambda: self._if_current(document, self._show_problem_count))
        session.refused.connect(lambda text: self._show_refusal(document, text))
        # The current document shows a failed save in a message of its own.
        session.save_failed.connect(
            lambda text: None if document is self.current else self._show_refusal(document, text)
        )
        session.saved_state_changed.connect(lambda: self._note_saved_state(document))
        session.changed.connect(lambda *_: self._if_current(document, lambda: self._show_edit(session)))
        session.analyzed.connect(self._show_models_and_budget)
        session.selection_changed.connect(lambda: self._if_current(document, self.refresh_actions))
        for signal in (shown.started, shown.ended):
            signal.connect(lambda: self._note_run(document))
        shown.updated.connect(lambda _touched: self._show_models_and_budget())
        shown.started.connect(lambda: self.presenter.remember_models(session))
        shown.ended.connect(lambda: self.notifier.notify_end(session))

    def _remove_document(self, document: DocumentPage) -> None:
        """Remove a document that was closed from the window."""
        inspector = document.created_inspector
        if inspector is not None:
            inspector.hide()  # first, or the bindings keep the visible fields with an editor inside forever
        self.tabs.remove(document)
        if inspector is not None:
            self.inspectors.removeWidget(inspector)
        self.remember_open()
        self.closing.release(document)
        clear_style_cache()

    def _follow_chat(self, document: DocumentPage, chat: ChatPanel) -> None:
        chat.run_wanted.connect(lambda name, text: self.runs.run_with_text(document, name, text))
        chat.stop_wanted.connect(lambda: self.runs.stop(document))
        chat.iterations_wanted.connect(lambda run_id: self._show_iterations(document, run_id))
        chat.failure_wanted.connect(lambda run_id: self._show_failure(document, run_id))

    def _apply_fix(self, document: DocumentPage, fix: str) -> None:
        """Do what a button of a problem or of a failed run offers."""
        kind, _, subject = fix.partition(":")
        match kind:
            case Fix.ADD_KEY:
                self.keys.ask_for_key(subject)
            case Fix.ALLOW_UNKNOWN_PRICE:
                document.open_field("prices")
            case Fix.CHANGE_SETTING:
                self.commands.open_settings().show_setting(subject)
            case Fix.CHOOSE_MODEL:
                document.choose_model()
            case Fix.GET_MODEL:
                self._show_download(None, subject, lambda _model: self._run_again(document, fix))
            case Fix.INSTALL:
                self._show_install(document, fix)
            case Fix.RAISE_BUDGET:
                document.open_field(subject)
            case _:
                self._allow_and_run(document)

    def _allow_and_run(self, document: DocumentPage) -> None:
        """Ask for permissions and run what failed again, without what had finished where that is stored."""
        view_model = document.session.shown.view_model
        part = view_model.state.part if view_model is not None else None
        if document.can_resume():
            document.resume_wanted.emit()
        elif part is not None:
            self.partial_runs.run_with(document, part)
        else:
            self.runs.run_with(document)

    def _show_download(
        self,
        use: Callable[[str], object] | None,
        name: str = "",
        then: Callable[[str], object] | None = None,
    ) -> None:
        """Show the dialog that downloads models; see `ModelDownloadDialog.show_for`."""
        from app.settings.model_download import ModelDownloadDialog

        dialog = self.window.findChild(ModelDownloadDialog)
        if dialog is None or not dialog.isVisible():
            dialog = ModelDownloadDialog(self.engine, self.preferences, self.window)
            dialog.downloaded.connect(lambda _model: self.models.refresh())
            dialog.deleted.connect(lambda _model: self.models.refresh())
        dialog.show_for(use, name, then)

    def _show_install(self, document: DocumentPage, fix: str) -> None:
        """Show the dialog that installs what the last run of a document lacks; then run it again."""
        from app.settings.install_dialog import InstallDialog

        dialog = InstallDialog(fix.partition(":")[2], self.window)
        dialog.installed.connect(self.models.refresh)
        dialog.installed.connect(lambda: self._run_again(document, fix))
        # Its button has closed the message that offers it.
        dialog.rejected.connect(lambda: None if document.is_closed else document.show_run_end())
        dialog.open()

    def _run_again(self, document: DocumentPage, fix: str) -> None:
        """Run a document whose last run failed for what was fixed since; resume the run if it is stored."""
        view_model = None if document.is_closed else document.session.shown.view_model
        if view_model is None or view_model.state.fix != fix:
            return
        if document.session.is_past:
            self.history.resume_shown(document)
        elif document.can_resume():
            document.resume_wanted.emit()
        else:
            self.runs.run(document)

    def _show_budget(self, document: DocumentPage) -> None:
        """Go to where the budget in the run bar is set: the workflow, or the user's settings."""
        budget = self.presenter.budget(document.session)
        if budget is None:
            return
        name = f"budget_{budget.unit}"
        if budget_limit(document.session.workflow, name, None) is not None:
            document.open_field(name)
        else:
            self.commands.open_settings().show_setting(name)

    def _show_chat(self, document: DocumentPage) -> None:
        if not document.show_chat():
            document.session.refused.emit(
                "The chat needs a workflow with one text input. Add an Input node of type text."
            )

    def _show_iterations(self, document: DocumentPage, run_id: str) -> None:
        """Show the iterations of a run of a document."""
        if run_id != document.session.shown.run_id:
            self.history.tabs.open_run(run_id)
        self.bottom_panel.unfold("iterations")

    def _show_failure(self, document: DocumentPage, run_id: str) -> None:
        """Show what failed in a run of a document; an earlier run opens with a message that leads there."""
        if run_id == document.session.shown.run_id:
            document.show_failure()
        else:
            self.history.tabs.open_run(run_id)

    def _show_inspector(self) -> None:
        action = self.actions_by_name["show_inspector"]
        if not action.isChecked():
            action.trigger()

    def _focus_properties(self, document: DocumentPage) -> None:
        """Focus the form of the selected node, showing the inspector first if it is hidden."""
        self._show_inspector()
        document.focus_properties()

    def _if_current(self, document: DocumentPage, act: Callable[[], object]) -> None:
        if document is self.current:
            act()

    def _note_run(self, document: DocumentPage) -> None:
        self.tabs.name(document)
        document.show_run_end()
        self._if_current(document, self._show_models_and_budget)

    def _note_saved_state(self, document: DocumentPage) -> None:
        self.tabs.name(document)
        self._if_current(document, self._show_title)
        self.remember_open()
        self.refresh_actions()

    def _show_refusal(self, document: DocumentPage, text: str) -> None:
        self.status_bar.refuse(text if document is self.current else f"“{document.session.name}”: {text}")
