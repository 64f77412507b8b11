"""A chat as it is held: what is said goes to the disk, then to the engine, and the answer comes back to both.

The window and any other face listen to events; the truth is in the store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

from app.answer import Answer
from app.chats import Chat, ChatStore, Message, MessageState, Role
from app.engine_service import EngineService
from app.settings import SamplingSettings, Settings
from engine.errors import ColibriError, InvalidRequestError

if TYPE_CHECKING:
    from engine import ModelInfo, SamplingParams

logger = logging.getLogger(__name__)

_TITLE_LENGTH = 48


@dataclass(frozen=True, slots=True)
class MessageAdded:
    """A message now ends the thread; an answer is empty at first and `streaming`."""

    message: Message


@dataclass(frozen=True, slots=True)
class PromptProgress:
    """So much of the prompt has been read for the answer `message_id`; the first n_reused tokens were known."""

    message_id: int
    n_prefilled: int
    n_prompt_tokens: int
    n_reused: int


@dataclass(frozen=True, slots=True)
class TextAdded:
    """A piece of an answer: the text of `n_tokens` tokens."""

    message_id: int
    text: str
    n_tokens: int


@dataclass(frozen=True, slots=True)
class ReasoningAdded:
    """A piece of what the model thinks before it answers: the text of `n_tokens` tokens."""

    message_id: int
    text: str
    n_tokens: int


@dataclass(frozen=True, slots=True)
class MessageFinished:
    """An answer has come to its end, as `message.state` and `message.metrics` say."""

    message: Message


@dataclass(frozen=True, slots=True)
class ThreadChanged:
    """Another branch is shown: these messages, first to last."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class ChatChanged:
    """The chat's title, place in the list or settings changed."""

    chat: Chat


Event = MessageAdded | PromptProgress | ReasoningAdded | TextAdded | MessageFinished | ThreadChanged | ChatChanged
Listener = Callable[[Event], None]


class Conversation:
    """One chat of the store, talked to through the service. All methods are called on the event loop's thread.

    `send`, `regenerate` and `edit` return the task that writes the answer; it ends with the finished message and
    raises nothing: what went wrong is in the message (state `error`, metrics["error"]).
    """

    def __init__(
        self, store: ChatStore, service: EngineService, chat_id: int, settings: Callable[[], Settings] = Settings
    ) -> None:
        self.store = store
        self.service = service
        self.chat_id = chat_id
        self._settings = settings
        self._listeners: list[Listener] = []
        self._answer: Answer | None = None
        self._task: asyncio.Task[Message] | None = None

    @property
    def chat(self) -> Chat:
        """The chat as the store has it."""
        return self.store.chat(self.chat_id)

    @property
    def messages(self) -> list[Message]:
        """The branch that is shown, first to last; while an answer streams, with all its text so far."""
        if self._answer is not None:
            self._answer.save()
        return self.store.thread(self.chat_id)

    @property
    def is_busy(self) -> bool:
        """Whether an answer is under way."""
        return self._task is not None and not self._task.done()

    def on_event(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(event)` for everything that happens; returns a function that ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def send(self, text: str) -> asyncio.Task[Message]:
        """Say something at the end of the shown branch, and have it answered."""
        self._check_idle()
        if not text.strip():
            raise InvalidRequestError("A message needs some text: expected at least one character that is not blank.")
        return self._ask(self.chat.active_leaf_id, text)

    def regenerate(self, message: Message) -> asyncio.Task[Message]:
        """Answer once more: beside the answer `message`, or below the question `message`."""
        self._check_idle()
        question_id = message.id if message.role is Role.USER else message.parent_id
        if question_id is None:
            raise InvalidRequestError("This message answers nothing, so it cannot be generated again.")
        return self._start(question_id, branch=True)

    def edit(self, message: Message, text: str) -> asyncio.Task[Message] | None:
        """Put another text beside this message and show it. A question is answered anew; an answer stays as given."""
        self._check_idle()
        if not text.strip():
            raise InvalidRequestError("A message needs some text: expected at least one character that is not blank.")
        if message.role is Role.USER:
            return self._ask(message.parent_id, text, branch=True)
        self.store.add_message(self.chat_id, message.parent_id, message.role, text)
        self._tell(ThreadChanged(tuple(self.messages)))
        return None

    def select(self, message: Message) -> None:
        """Show the branch that goes through this message."""
        self._check_idle()
        self._tell(ThreadChanged(tuple(self.store.select(message.id))))

    def stop(self) -> None:
        """Stop the answer under way; what there is of it stays. Nothing happens when there is none."""
        if self._answer is not None:
            self._answer.stop()

    async def close(self) -> None:
        """Stop, and wait until everything is saved."""
        self.stop()
        if self._task is not None:
            await asyncio.wait([self._task])

    def _ask(self, parent_id: int | None, text: str, *, branch: bool = False) -> asyncio.Task[Message]:
        question = self.store.add_message(self.chat_id, parent_id, Role.USER, text)
        if branch:
            self._tell(ThreadChanged(tuple(self.store.thread(self.chat_id))))
        else:
            self._tell(MessageAdded(question))
        if not self.chat.title:
            self.store.rename(self.chat_id, title_of(text))
        self._tell(ChatChanged(self.chat))
        return self._start(question.id, branch=False)

    def _start(self, question_id: int, *, branch: bool) -> asyncio.Task[Message]:
        chat = self.chat
        history = prompt_messages(chat, self.store.path_to(question_id))
        message = self.store.add_message(self.chat_id, question_id, Role.ASSISTANT, state=MessageState.STREAMING)
        if branch:
            self._tell(ThreadChanged(tuple(self.store.thread(self.chat_id))))
        else:
            self._tell(MessageAdded(message))
        self._answer = Answer(self.store, message.id, self._text_added, self._reasoning_added, self._prompt_progress)
        self._task = asyncio.get_running_loop().create_task(self._write(self._answer, chat, history))
        return self._task

    async def _write(self, answer: Answer, chat: Chat, history: list[dict[str, Any]]) -> Message:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(None, self.store.sync)  # the question is on the disk before the engine sees it
            settings = self._settings()
            params = partial(sampling_params, settings.sampling, chat.sampling)
            thinking = (settings.thinking, settings.thinking_effort)
            message = await answer.write(self.service, history, params, thinking)
        except asyncio.CancelledError:
            answer.abandon()
            raise
        except ColibriError as error:
            message = answer.fail(error)
        except Exception as error:
            logger.exception("an answer failed")
            message = answer.fail(ColibriError(f"{type(error).__name__}: {error}. This is a fault of Colibri."))
        finally:
            self._answer = None
        self._tell(MessageFinished(message))
        self._tell(ChatChanged(self.chat))
        return message

    def _text_added(self, message_id: int, text: str, n_tokens: int) -> None:
        self._tell(TextAdded(message_id, text, n_tokens))

    def _reasoning_added(self, message_id: int, text: str, n_tokens: int) -> None:
        self._tell(ReasoningAdded(message_id, text, n_tokens))

    def _prompt_progress(self, message_id: int, n_prefilled: int, n_prompt_tokens: int, n_reused: int) -> None:
        self._tell(PromptProgress(message_id, n_prefilled, n_prompt_tokens, n_reused))

    def _check_idle(self) -> None:
        if self.is_busy:
            raise InvalidRequestError("An answer is under way in this chat: stop it, or wait for its end.")

    def _tell(self, event: Event) -> None:
        for listener in list(self._listeners):
            listener(event)


def prompt_messages(chat: Chat, messages: list[Message]) -> list[dict[str, Any]]:
    """What the chat template is given: the system prompt and the branch, one message per turn.

    Answers that stayed empty are left out, and what the same role said twice in a row is joined: many templates
    insist that user and assistant take turns. Which reasoning the model sees again is for the template to say.
    """
    turns: list[dict[str, Any]] = []
    if chat.system_prompt:
        turns.append({"role": str(Role.SYSTEM), "content": chat.system_prompt})
    for message in messages:
        if not message.content:
            continue
        if not turns or turns[-1]["role"] != message.role:
            turns.append({"role": str(message.role), "content": message.content})
        else:
            turns[-1]["content"] += f"\n\n{message.content}"
        if message.reasoning:
            turns[-1]["reasoning_content"] = message.reasoning
    return turns


def sampling_params(settings: SamplingSettings, overrides: Mapping[str, Any], model: ModelInfo) -> SamplingParams:
    """The engine's sampling parameters for a model: the chat's own, else the settings', else what it is best with."""
    from engine import SamplingParams  # noqa: PLC0415

    known = {item.name for item in fields(SamplingSettings)}
    values = settings.resolved(model.sampling.values if model.sampling is not None else None)
    return SamplingParams(**values | {name: value for name, value in overrides.items() if name in known})


def title_of(text: str) -> str:
    """A chat's first title: the beginning of the first thing said in it."""
    line = " ".join(text.split())
    if len(line) <= _TITLE_LENGTH:
        return line
    cut = line[:_TITLE_LENGTH]
    return (cut.rsplit(" ", 1)[0] if " " in cut[_TITLE_LENGTH // 2 :] else cut).rstrip(" ,.;:") + "…"
