"""The main window: chats to the left, the conversation in the middle, live panels to the right."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QMainWindow, QSplitter

from app.chats import Chat, ChatStore
from app.conversation import ChatChanged, Conversation, Event
from app.engine_service import EngineService
from app.settings import Settings, SettingsFile
from engine.errors import ColibriError
from ui.actions import WindowActions
from ui.chat.answer_wait import AnswerWait
from ui.chat.chat_list_model import ShownChat
from ui.chat.chat_page import ChatPage
from ui.chat.drafts import Drafts
from ui.chat.sidebar import Sidebar
from ui.chat.thinking_setting import ThinkingSetting
from ui.convert.drop_zone import dropped_path
from ui.help_dialog import HelpDialog
from ui.inside import SYSTEM, Inside
from ui.live_docks import LiveDocks
from ui.management import Management
from ui.models.model_loader import LoadState, ModelLoader
from ui.models.model_picker import ShownModel
from ui.navigation import CHAT, Navigation, Pages
from ui.settings.settings_dialog import SettingsDialog
from ui.status_line import StatusLine
from ui.theme import current_theme
from ui.theme.theme import usual_font_size_px
from ui.widgets.file_dialogs import ask_file, ask_folder
from ui.widgets.toast import Toast

if TYPE_CHECKING:
    from app.library import Library

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Services:
    """What the window shows and asks."""

    store: ChatStore
    engine: EngineService
    settings: SettingsFile
    drafts: Drafts
    n_cores: int = 1


class MainWindow(QMainWindow):
    """Holds no truth: chats are in the store, the model in the engine service, choices in the settings."""

    closed = Signal()

    def __init__(self, services: Services) -> None:
        super().__init__()
        self.services = services
        self.loader = ModelLoader(services.engine, services.settings)
        self._conversations: dict[int, Conversation] = {}
        self.setWindowTitle("Colibri")
        self.setUnifiedTitleAndToolBarOnMac(True)
        self.setAcceptDrops(True)
        self.resize(self.sizeHint())
        self._build()
        self.management = Management(self)
        self.actions_ = WindowActions(self)
        self._connect()
        self._restore_layout()
        self._show_chats()
        self._open_last()
        self._on_model()

    def _build(self) -> None:
        self.sidebar = Sidebar(self)
        self.page = ChatPage(self.services.drafts, self)
        AnswerWait(self.page, self.loader, self.services.engine)
        ThinkingSetting(self.page.composer.thinking, self.services.engine, self.services.settings)
        self.status = StatusLine(self)
        self._splitter = QSplitter(Qt.Orientation.Horizontal, self)
        self._splitter.setHandleWidth(1)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.addWidget(self.sidebar)
        self.navigation = Navigation(self)
        self.sidebar.add_foot(self.navigation)
        self.pages = Pages(self.page, self.navigation, self)
        self._splitter.addWidget(self.pages)
        self._splitter.setStretchFactor(1, 1)
        self.sidebar.setMinimumWidth(180)
        self.pages.setMinimumWidth(380)
        self.setCentralWidget(self._splitter)
        self.statusBar().setSizeGripEnabled(False)
        self.statusBar().addWidget(self.status, 1)
        engine = self.services.engine
        self.setDockNestingEnabled(True)
        self.docks = LiveDocks(self, lambda: engine.telemetry, lambda: engine.memory, self.services.n_cores)
        self.dock = self.docks.experts
        self.toast = Toast(self)
        self.inside = Inside(self.pages, self.toast, engine, self.services.settings, self)

    def _connect(self) -> None:
        services = self.services
        self.sidebar.new_chat_requested.connect(self.new_chat)
        self.sidebar.chat_selected.connect(self.open_chat)
        self.sidebar.rename_requested.connect(self.rename_chat)
        self.sidebar.pin_requested.connect(self.pin_chat)
        self.sidebar.delete_requested.connect(self.delete_chat)
        self.sidebar.search_changed.connect(lambda _text: self._show_chats())
        self.page.first_message.connect(self._start_chat)
        self.page.view.experts_requested.connect(self.inside.show_experts_of)
        self.page.not_ready.connect(self._say_not_ready)
        self.page.figures_changed.connect(self._show_figures)
        self.page.context_changed.connect(self._show_context)
        self.page.notice.cancelled.connect(self.loader.cancel)
        self.page.notice.retried.connect(self.loader.retry)
        picker = self.page.picker
        picker.chosen.connect(self.load_model)
        picker.opened_file.connect(self.choose_model_file)
        picker.opened_folder.connect(self.choose_model_folder)
        picker.unload_requested.connect(self.loader.unload)
        picker.cancel_requested.connect(self.loader.cancel)
        self.pages.shown.connect(self._on_page)
        self.loader.changed.connect(self._on_model)
        services.engine.on_change(self._on_model)
        services.settings.on_change(self._on_settings)

    # -- chats

    def new_chat(self) -> None:
        """Show an empty conversation; it becomes a chat with its first message."""
        self.pages.show_page(CHAT)
        self.page.open(None)
        self.sidebar.mark(None)
        self.services.settings.change(last_chat_id=None)
        self.page.composer.setFocus(Qt.FocusReason.OtherFocusReason)

    def open_chat(self, chat_id: int) -> None:
        """Show a chat of the list."""
        self.pages.show_page(CHAT)
        self.page.open(self._conversation(chat_id))
        self.sidebar.mark(chat_id)
        self.services.settings.change(last_chat_id=chat_id)

    def show_system_check(self) -> None:
        """Show what this machine gives the engine."""
        self.pages.show_page(SYSTEM)

    def _on_page(self, key: str) -> None:
        self.sidebar.mark(self.current_chat_id() if key == CHAT else None)
        if key == CHAT:
            self.page.composer.setFocus(Qt.FocusReason.OtherFocusReason)

    def rename_chat(self, chat_id: int, title: str) -> None:
        self.services.store.rename(chat_id, title)
        self._after_chat_change(chat_id)

    def pin_chat(self, chat_id: int, is_pinned: bool) -> None:
        self.services.store.update(chat_id, pinned=is_pinned)
        self._after_chat_change(chat_id)

    def delete_chat(self, chat_id: int) -> None:
        """Take a chat away, with a way back."""
        conversation = self._conversations.pop(chat_id, None)
        if conversation is not None:
            conversation.stop()
        title = self._title(self.services.store.chat(chat_id))
        self.services.store.delete(chat_id)
        if self.current_chat_id() == chat_id:
            self.new_chat()
        self._show_chats()
        text = self.tr('Deleted "{title}"').format(title=title if len(title) <= 40 else title[:39] + "…")
        self.toast.show_message(text, self.tr("Undo"), lambda: self._restore_chat(chat_id))

    def _restore_chat(self, chat_id: int) -> None:
        self.services.store.restore(chat_id)
        self._show_chats()
        self.open_chat(chat_id)

    def current_chat_id(self) -> int | None:
        conversation = self.page.conversation
        return None if conversation is None else conversation.chat_id

    def _conversation(self, chat_id: int) -> Conversation:
        if chat_id not in self._conversations:
            services = self.services
            conversation = Conversation(services.store, services.engine, chat_id, lambda: services.settings.settings)
            conversation.on_event(self._on_conversation)
            self._conversations[chat_id] = conversation
        return self._conversations[chat_id]

    def _start_chat(self, text: str) -> None:
        chat = self.services.store.create_chat(system_prompt=self.services.settings.settings.system_prompt)
        self.page.send_first(self._conversation(chat.id), text)
        self.services.settings.change(last_chat_id=chat.id)
        self._show_chats()

    def _on_conversation(self, event: Event) -> None:
        if isinstance(event, ChatChanged):
            self._show_chats()

    def _after_chat_change(self, chat_id: int) -> None:
        self._show_chats()
        if self.current_chat_id() == chat_id:
            self.page.show_title()

    def _title(self, chat: Chat) -> str:
        return chat.title or self.tr("New chat")

    def _show_chats(self) -> None:
        query = self.sidebar.search_text()
        chats = {chat.id: chat for chat in self.services.store.list_chats()}
        entries: list[ShownChat] = []
        if query:
            found: dict[int, str] = {}
            for hit in self.services.store.search(query):
                found.setdefault(hit.chat_id, hit.excerpt if hit.message_id is not None else "")
            entries = [self._shown(chats[chat_id], text) for chat_id, text in found.items() if chat_id in chats]
        else:
            entries = [self._shown(chat) for chat in chats.values()]
        current = self.current_chat_id() if self.pages.current == CHAT else None
        self.sidebar.set_chats(entries, current, is_search=bool(query))

    def _shown(self, chat: Chat, snippet: str = "") -> ShownChat:
        return ShownChat(chat.id, self._title(chat), datetime.fromtimestamp(chat.updated_at), chat.pinned, snippet)

    def _open_last(self) -> None:
        last = self.services.settings.settings.last_chat_id
        is_there = any(chat.id == last for chat in self.services.store.list_chats())
        if last is not None and is_there:
            self.open_chat(last)
        else:
            self.page.open(None)
        self.page.composer.setFocus(Qt.FocusReason.OtherFocusReason)

    # -- models

    def load_model(self, path: Path) -> None:
        """Open a model in place of the present one."""
        self.loader.load(path)

    def choose_model_file(self) -> None:
        """Ask for a model file and open it."""
        filters = [self.tr("Models (*.gguf)"), self.tr("All files (*)")]
        ask_file(self, self.tr("Open a model file"), filters, lambda name: self.load_model(Path(name)))

    def choose_model_folder(self) -> None:
        """Ask for a folder whose models are to be listed."""
        ask_folder(self, self.tr("Add a folder of models"), self._add_folder)

    def _add_folder(self, folder: str) -> None:
        folders = self.services.settings.settings.model_folders
        if folder not in folders:
            self.services.settings.change(model_folders=(*folders, folder))

    def attach_library(self, library: Library) -> None:
        """Offer the models of the library from now on."""
        self.loader.library = library
        library.on_change(self._on_library)
        self._on_library()

    def _on_library(self) -> None:
        library = self.loader.library
        self.page.picker.set_models(
            [
                ShownModel(
                    entry.path,
                    entry.name,
                    entry.file_bytes,
                    entry.type_name,
                    entry.is_starter,
                    entry.comparison,
                    entry.problem,
                )
                for entry in (library.entries if library is not None else [])
            ]
        )
        self.management.show_library()

    def _on_model(self) -> None:
        loader, picker, notice = self.loader, self.page.picker, self.page.notice
        progress = loader.progress
        info = self.services.engine.info
        if progress is not None:
            self._show_progress(progress.title, progress.fraction, progress.detail, progress.is_long)
        elif loader.state is LoadState.ERROR:
            picker.show_none()
            notice.show_error(loader.error)
            self._describe(self.tr("No model"), self.tr("It could not be opened"), "danger")
        elif loader.state is LoadState.READY and info is not None and loader.path is not None:
            notice.hide()
            picker.show_loaded(loader.path, loader.name, info.type_name)
            self._describe(loader.name, self.tr("Ready"), "ok")
        else:
            notice.hide()
            picker.show_none()
            self._describe(self.tr("No model"), self.tr("Choose one above to begin"), "text_faint")
        placeholder = "" if loader.can_take_messages else self.tr("Write now, and send it when a model is loaded")
        self.page.composer.set_ready(loader.can_take_messages, placeholder)
        self._show_context(self._n_context_used)

    def _show_progress(self, title: str, fraction: float | None, detail: str, is_long: bool) -> None:
        loader = self.loader
        if loader.path is not None:
            self.page.picker.show_loading(loader.path, loader.name, fraction)
        else:
            self.page.picker.show_none()
        if is_long:
            self.page.notice.show_progress(title, fraction, detail)
        else:
            self.page.notice.hide()
        self._describe(title, detail, "busy")

    def _describe(self, what: str, state: str, token: str) -> None:
        text = f"{what}  ·  {state}" if state else what
        self.status.set_state(text, token)
        self.page.empty.set_state(text)

    def _say_not_ready(self) -> None:
        self.toast.show_message(self.tr("No model is loaded yet; your text is kept."))

    # -- figures

    _n_context_used = 0

    def _show_figures(self, tokens_per_second: float, ttft_ms: float) -> None:
        self.status.set_rate(tokens_per_second)
        if ttft_ms > 0 or tokens_per_second == 0:
            self.status.set_ttft(ttft_ms)

    def _show_context(self, n_used: int) -> None:
        self._n_context_used = n_used
        n_total = self.loader.context_length if self.loader.state is LoadState.READY else 0
        self.status.set_context(n_used, n_total)

    # -- appearance and settings

    def _on_settings(self, settings: Settings) -> None:
        theme = current_theme()
        theme.set_mode(settings.theme)  # type: ignore[arg-type]
        theme.set_font_size(settings.font_size or usual_font_size_px())
        self.actions_.show_settings(settings)

    def change_font_size(self, step: int) -> None:
        """Make the text larger or smaller; 0 puts it back to normal."""
        size = current_theme().font_size_px + step if step else usual_font_size_px()
        current_theme().set_font_size(size)
        self.services.settings.change(font_size=current_theme().font_size_px if step else 0)

    def show_settings(self) -> None:
        model = self.services.engine.info
        dialog = SettingsDialog(self.services.settings, self.services.n_cores, self, model=model)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def show_help(self) -> None:
        dialog = HelpDialog(self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def copy_last_answer(self) -> None:
        text = self.page.last_answer()
        if text:
            QGuiApplication.clipboard().setText(text)
            self.toast.show_message(self.tr("The last answer was copied"))

    def show_error(self, text: str) -> None:
        """Tell the user of a failure that nobody foresaw."""
        self.toast.show_message(self.tr("Something went wrong: {error}").format(error=text.partition("\n")[0]))

    def say_crashed(self) -> None:
        """Own up to the last run's crash."""
        self.toast.show_message(self.tr("Colibri ended unexpectedly last time. Your chats were kept."))

    def try_(self, act: Callable[[], object]) -> None:
        """Do something that the user asked for, and say it if it is refused."""
        try:
            act()
        except ColibriError as error:
            self.toast.show_message(str(error))

    def _restore_layout(self) -> None:
        settings = self.services.settings.settings
        if settings.window_geometry:
            self.restoreGeometry(QByteArray.fromBase64(settings.window_geometry.encode()))
        if settings.window_state:
            self.restoreState(QByteArray.fromBase64(settings.window_state.encode()))
        else:
            self.dock.setVisible(settings.expert_panel_shown)
            self.resizeDocks([self.dock], [320], Qt.Orientation.Horizontal)
        self._splitter.setSizes([current_theme().px(250), 10_000])

    def save_layout(self) -> None:
        """Put the window's place and shape into the settings."""
        self.services.settings.change(
            window_geometry=bytes(self.saveGeometry().toBase64().data()).decode(),
            window_state=bytes(self.saveState().toBase64().data()).decode(),
            expert_panel_shown=not self.dock.isHidden(),
        )

    def sizeHint(self) -> QSize:
        return QSize(1280, 820)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped_path(event.mimeData()) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        path = dropped_path(event.mimeData())
        if path is not None:
            event.acceptProposedAction()
            self.management.open_dropped(path)

    async def finish(self) -> None:
        """Stop what is under way and save it."""
        self.management.leave()
        await self.loader.close()
        await self.inside.close()
        for conversation in self._conversations.values():
            await conversation.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        self.save_layout()
        super().closeEvent(event)
        self.closed.emit()
