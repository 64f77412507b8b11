"""What the conversation needs to know of one message to draw it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.chats import Message


class MessageState(StrEnum):
    WAITING = "waiting"  # asked for, the engine has not begun
    READING = "reading"  # the prompt is being read
    STREAMING = "streaming"
    COMPLETE = "complete"
    STOPPED = "stopped"
    ERROR = "error"

    @property
    def is_live(self) -> bool:
        """Whether more may come."""
        return self in {MessageState.WAITING, MessageState.READING, MessageState.STREAMING}


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """``n_read`` of ``n_to_read`` prompt tokens are meant while the state is READING.

    ``waits_for`` is meant while it is WAITING: what is done before the model can begin ("": nothing), and ``waited``
    how much of that is done (None: not known).
    """

    id: int
    role: str
    text: str = ""
    state: MessageState = MessageState.COMPLETE
    error: str = ""
    n_read: int = 0
    n_to_read: int = 0
    waits_for: str = ""
    waited: float | None = None
    n_tokens: int = 0
    tokens_per_second: float = 0.0
    ttft_ms: float = 0.0
    thinking_ms: float = 0.0
    model: str = ""
    sibling_index: int = 0
    n_siblings: int = 1
    reasoning: str = ""
    was_cut: bool = False  # the answer ended because the length or the context was used up

    @property
    def is_user(self) -> bool:
        return self.role == "user"


def shown(message: Message) -> ShownMessage:
    """A stored message as the conversation shows it; its siblings are left to be looked up when it comes near."""
    metrics = message.metrics
    state = MessageState(str(message.state))
    if state is MessageState.STREAMING and not (message.content or message.reasoning):
        state = MessageState.WAITING
    return ShownMessage(
        id=message.id,
        role=str(message.role),
        text=message.content,
        reasoning=message.reasoning,
        state=state,
        error=str(metrics.get("error", "")),
        n_tokens=int(metrics.get("completion_tokens", 0)),
        tokens_per_second=float(metrics.get("tokens_per_second", 0.0)),
        ttft_ms=float(metrics.get("ttft_ms", 0.0)),
        thinking_ms=float(metrics.get("thinking_ms", 0.0)),
        model=str(metrics.get("model", "")),
        was_cut=metrics.get("finish_reason") in {"length", "context"},
    )
