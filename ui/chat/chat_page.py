"""The middle of the window: title and model picker, the conversation or an empty state, the composer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app.chats import Message
from app.conversation import (
    ChatChanged,
    Conversation,
    Event,
    MessageAdded,
    MessageFinished,
    PromptProgress,
    ReasoningAdded,
    TextAdded,
    ThreadChanged,
)
from ui.chat.composer import Composer
from ui.chat.conversation_view import COLUMN_WIDTH, ConversationView
from ui.chat.drafts import Drafts
from ui.chat.empty_state import EmptyState
from ui.chat.shown_message import MessageState, ShownMessage, shown
from ui.models.load_notice import LoadNotice
from ui.models.model_picker import ModelPicker
from ui.theme import current_theme
from ui.widgets.elided_label import ElidedLabel

HEADER_HEIGHT = 48
_RATE_AFTER_TOKENS = 4  # a rate over fewer says nothing
_FIGURES_EVERY_S = 0.25  # nobody reads faster


def _nothing() -> None:
    """There is no listener to take away."""


class ChatPage(QWidget):
    """Shows one conversation, or none yet; the first message of a new chat goes out as ``first_message``."""

    first_message = Signal(str)
    not_ready = Signal()
    figures_changed = Signal(float, float)  # tokens a second, time to the first token in ms
    context_changed = Signal(int)  # tokens in use
    busy_changed = Signal(bool)
    title_changed = Signal()

    def __init__(self, drafts: Drafts, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("Page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._drafts = drafts
        self._conversation: Conversation | None = None
        self._forget: Callable[[], None] = _nothing
        self._editing: int | None = None
        self._first_token_s = self._figures_at_s = 0.0
        self._n_tokens = 0
        self._n_prompt_tokens = 0
        self._thought_ms = 0.0
        self._waits_for = ""
        self._waited: float | None = None
        self._build()

    def _build(self) -> None:
        theme = current_theme()
        self.title = ElidedLabel(self)
        self.title.setProperty("tone", "title")
        self.picker = ModelPicker(self)
        header = QWidget(self)
        header.setObjectName("Header")
        header.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        bar = QHBoxLayout(header)
        bar.setContentsMargins(theme.px(20), 0, theme.px(10), 0)
        bar.setSpacing(12)
        self._header = header
        bar.addWidget(self.title, 1)
        bar.addWidget(self.picker)
        self.view = ConversationView(self)
        self.view.prepare = self._with_siblings
        self.view.regenerate_requested.connect(self.regenerate)
        self.view.edit_requested.connect(self.begin_edit)
        self.view.branch_requested.connect(self._step_branch)
        self.empty = EmptyState(self)
        self.empty.suggested.connect(self._on_suggested)
        self._stack = QStackedWidget(self)
        self._stack.addWidget(self.empty)
        self._stack.addWidget(self.view)
        self.notice = LoadNotice(self)
        self.composer = Composer(self)
        self.composer.submitted.connect(self._on_submitted)
        self.composer.refused.connect(self.not_ready)
        self.composer.stop_requested.connect(self.stop)
        self.composer.edit_last_requested.connect(self.edit_last)
        self.composer.edit_cancelled.connect(self._on_edit_cancelled)
        self.composer.draft_changed.connect(self._on_draft)
        self._foot = QWidget(self)
        foot = QVBoxLayout(self._foot)
        foot.setContentsMargins(0, 0, 0, 0)
        foot.setSpacing(10)
        foot.addWidget(self.notice)
        foot.addWidget(self.composer)
        centred = QHBoxLayout()
        centred.setContentsMargins(theme.px(28), 4, theme.px(28), theme.px(16))
        centred.addStretch(1)
        centred.addWidget(self._foot, 1000)
        centred.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(header)
        layout.addWidget(self._stack, 1)
        layout.addLayout(centred)
        self._restyle()
        theme.changed.connect(self._restyle)

    def _restyle(self) -> None:
        self._foot.setMaximumWidth(current_theme().px(COLUMN_WIDTH))
        self._header.setFixedHeight(current_theme().px(HEADER_HEIGHT))

    # -- which conversation

    @property
    def conversation(self) -> Conversation | None:
        return self._conversation

    @property
    def is_busy(self) -> bool:
        """Whether the shown conversation is being answered."""
        return self._conversation is not None and self._conversation.is_busy

    def open(self, conversation: Conversation | None) -> None:
        """Show a conversation; None shows a new, still empty chat."""
        self._forget()
        self._conversation = conversation
        self._editing = None
        self.composer.set_editing(False)
        if conversation is None:
            self._forget = _nothing
            self.view.set_messages([])
        else:
            self._forget = conversation.on_event(self._on_event)
            self.view.set_messages([self._shown(message) for message in conversation.messages])
        self._stack.setCurrentWidget(self.empty if conversation is None else self.view)
        self.composer.set_text(self._drafts.text(self._chat_id()))
        self.show_title()
        self._show_busy()
        self._show_figures()

    def _chat_id(self) -> int | None:
        return None if self._conversation is None else self._conversation.chat_id

    def show_title(self) -> None:
        """Show the title as the store has it."""
        title = self._conversation.chat.title if self._conversation is not None else ""
        self.title.setText(title or self.tr("New chat"))
        self.title_changed.emit()

    def _show_busy(self) -> None:
        self.composer.set_generating(self.is_busy)
        self.busy_changed.emit(self.is_busy)

    def _show_figures(self) -> None:
        """The figures of the newest answer that has any."""
        if self._conversation is None:
            self.figures_changed.emit(0.0, 0.0)
            self.context_changed.emit(0)
            return
        for message in reversed(self._conversation.messages):
            metrics = message.metrics
            if metrics.get("completion_tokens"):
                rate, ttft = float(metrics.get("tokens_per_second", 0)), float(metrics.get("ttft_ms", 0))
                self.figures_changed.emit(rate, ttft)
                self.context_changed.emit(int(metrics.get("prompt_tokens", 0)) + int(metrics["completion_tokens"]))
                return
        self.figures_changed.emit(0.0, 0.0)
        self.context_changed.emit(0)

    def _with_siblings(self, message: ShownMessage) -> ShownMessage:
        if self._conversation is None:
            return message
        store = self._conversation.store
        ids = [sibling.id for sibling in store.siblings(store.message(message.id))]
        return replace(message, sibling_index=ids.index(message.id), n_siblings=len(ids))

    def set_wait(self, waits_for: str, waited: float | None = None) -> None:
        """What an answer that is asked for waits for before the model can begin it, and how much of that is done.

        "" when there is nothing of the kind; ``waited`` None: it cannot be said.
        """
        self._waits_for, self._waited = waits_for, waited
        for message in self.view.messages[-1:]:
            if message.state is MessageState.WAITING:
                self.view.change(message.id, waits_for=waits_for, waited=waited)

    def _shown(self, message: Message) -> ShownMessage:
        return replace(shown(message), waits_for=self._waits_for, waited=self._waited)

    # -- what the user does

    def _on_submitted(self, text: str) -> None:
        self._drafts.put(self._chat_id(), "")
        editing, self._editing = self._editing, None
        self.composer.set_editing(False)
        if self._conversation is None:
            self.first_message.emit(text)
        elif editing is not None:
            self._conversation.edit(self._conversation.store.message(editing), text)
        else:
            self._conversation.send(text)
        self._show_busy()

    def _on_suggested(self, text: str) -> None:
        self.composer.set_text(text)
        self.composer.submit()

    def send_first(self, conversation: Conversation, text: str) -> None:
        """Open a conversation that has just been made, and say the first thing in it."""
        self._drafts.put(None, "")
        self.open(conversation)
        conversation.send(text)
        self._show_busy()

    def stop(self) -> None:
        """Stop the answer under way."""
        if self._conversation is not None:
            self._conversation.stop()

    def regenerate(self, message_id: int) -> None:
        """Answer once more."""
        if self._conversation is not None and not self.is_busy:
            self._conversation.regenerate(self._conversation.store.message(message_id))
            self._show_busy()

    def regenerate_last(self) -> None:
        messages = self.view.messages
        if messages:
            self.regenerate(messages[-1].id)

    def begin_edit(self, message_id: int) -> None:
        """Put a message of the user into the composer, to be sent again in another form."""
        message = self.view.message(message_id)
        if message is not None and message.is_user and not self.is_busy:
            self._editing = message_id
            self.composer.set_editing(True)
            self.composer.set_text(message.text)
            self.composer.setFocus(Qt.FocusReason.OtherFocusReason)

    def edit_last(self) -> None:
        """Edit the newest message of the user."""
        for message in reversed(self.view.messages):
            if message.is_user:
                self.begin_edit(message.id)
                return

    def last_answer(self) -> str:
        """The newest answer as it was written; "" when there is none."""
        return next((message.text for message in reversed(self.view.messages) if not message.is_user), "")

    def _on_edit_cancelled(self) -> None:
        self._editing = None
        self.composer.set_text(self._drafts.text(self._chat_id()))

    def _on_draft(self, text: str) -> None:
        if self._editing is None:
            self._drafts.put(self._chat_id(), text)

    def _step_branch(self, message_id: int, step: int) -> None:
        conversation = self._conversation
        if conversation is None or conversation.is_busy:
            return
        siblings = conversation.store.siblings(conversation.store.message(message_id))
        position = [sibling.id for sibling in siblings].index(message_id) + step
        if 0 <= position < len(siblings):
            conversation.select(siblings[position])

    # -- what happens in the conversation

    def _on_event(self, event: Event) -> None:
        match event:
            case MessageAdded(message):
                self._n_tokens = 0
                self.view.append(self._shown(message))
                self._stack.setCurrentWidget(self.view)
            case PromptProgress(message_id, n_prefilled, n_prompt_tokens, _):
                self.view.change(message_id, state=MessageState.READING, n_read=n_prefilled, n_to_read=n_prompt_tokens)
                self._n_prompt_tokens = n_prompt_tokens
                self.context_changed.emit(n_prompt_tokens)
            case TextAdded(message_id, text, n_tokens):
                self._on_text(message_id, n_tokens, text)
            case ReasoningAdded(message_id, text, n_tokens):
                self._on_text(message_id, n_tokens, reasoning=text)
            case MessageFinished(message):
                before = self.view.message(message.id)
                if before is not None:
                    after = shown(message)
                    self.view.update_message(
                        replace(after, sibling_index=before.sibling_index, n_siblings=before.n_siblings)
                    )
                self.view.flush()
                self._show_figures()
                asyncio.get_running_loop().call_soon(self._show_busy)  # the conversation's task ends after this event
            case ThreadChanged(messages):
                self._n_tokens = 0
                self.view.set_messages([self._shown(message) for message in messages], keep_position=True)
            case ChatChanged(_):
                self.show_title()
                self._show_busy()

    def _on_text(self, message_id: int, n_tokens: int, text: str = "", *, reasoning: str = "") -> None:
        before = self.view.message(message_id)
        if before is None:
            return
        now_s = perf_counter()
        if not before.text and text:
            self._thought_ms = (now_s - self._first_token_s) * 1e3 if before.reasoning else 0.0
        self.view.change(
            message_id,
            state=MessageState.STREAMING,
            text=before.text + text,
            reasoning=before.reasoning + reasoning,
            thinking_ms=self._thought_ms,
        )
        if self._n_tokens == 0:
            self._first_token_s = self._figures_at_s = now_s
        self._n_tokens += n_tokens
        if self._n_tokens > _RATE_AFTER_TOKENS and now_s - self._figures_at_s >= _FIGURES_EVERY_S:
            self._figures_at_s = now_s
            self.figures_changed.emit((self._n_tokens - 1) / (now_s - self._first_token_s), 0.0)
            self.context_changed.emit(self._n_prompt_tokens + self._n_tokens)
