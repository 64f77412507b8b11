"""What the chat store holds, as values: chats, their messages, and the hits of a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """Who speaks."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class MessageState(StrEnum):
    """How far a message has come; all but `streaming` are ends."""

    COMPLETE = "complete"
    STREAMING = "streaming"
    STOPPED = "stopped"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation's head. Times are seconds since 1970; `sampling` holds only what differs from the settings."""

    id: int
    title: str
    created_at: float
    updated_at: float
    pinned: bool = False
    folder: str = ""
    system_prompt: str = ""
    model: str = ""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    active_leaf_id: int | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat's tree: `parent_id` is the message it follows, None for a first one.

    `metrics` of an answer: prompt_tokens, completion_tokens, ttft_ms, tokens_per_second, model, finish_reason;
    thinking_ms where the model reasoned; of a failed one also `error`, fit to be shown. `reasoning` is what the model
    thought before it answered.
    """

    id: int
    chat_id: int
    parent_id: int | None
    role: Role
    content: str
    created_at: float
    state: MessageState = MessageState.COMPLETE
    metrics: Mapping[str, Any] = field(default_factory=dict)
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A place where a search found all its words: in a message, or (message_id None) in a chat's title."""

    chat_id: int
    message_id: int | None
    title: str
    excerpt: str
    created_at: float
