"""The chat store against a plain model of it: any sequence of calls, reopenings included, gives the same chats."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from app.chats import ChatStore, MessageState

# Letters whose cases fold one to one, spaces, signs that mean something in SQL, and two scripts.
_texts = st.text(alphabet="abcXYZ éÉ%_'\"\\*-鸟蜂🐦", max_size=30)


@dataclass
class ModelMessage:
    chat_id: int
    parent_id: int | None
    content: str
    state: MessageState


@dataclass
class ModelChat:
    title: str
    leaf_id: int | None = None
    deleted: bool = False
    messages: dict[int, ModelMessage] = field(default_factory=dict)


class ChatStoreMachine(RuleBasedStateMachine):
    chats = Bundle("chats")
    messages = Bundle("messages")

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "chats.db"
        self.store = ChatStore(self.path)
        self.model: dict[int, ModelChat] = {}

    @rule(target=chats, title=_texts)
    def create_chat(self, title: str) -> int:
        chat_id = self.store.create_chat(title).id
        self.model[chat_id] = ModelChat(title)
        return chat_id

    @rule(target=messages, chat_id=chats, content=_texts, streaming=st.booleans())
    def add_first_message(self, chat_id: int, content: str, streaming: bool) -> tuple[int, int]:
        return self._add(chat_id, None, content, streaming)

    @rule(target=messages, parent=messages, content=_texts, streaming=st.booleans())
    def add_message(self, parent: tuple[int, int], content: str, streaming: bool) -> tuple[int, int]:
        return self._add(parent[0], parent[1], content, streaming)

    def _add(self, chat_id: int, parent_id: int | None, content: str, streaming: bool) -> tuple[int, int]:
        state = MessageState.STREAMING if streaming else MessageState.COMPLETE
        message_id = self.store.add_message(chat_id, parent_id, "user", content, state=state).id
        self.model[chat_id].messages[message_id] = ModelMessage(chat_id, parent_id, content, state)
        self.model[chat_id].leaf_id = message_id
        return chat_id, message_id

    @rule(message=messages, text=_texts)
    def append(self, message: tuple[int, int], text: str) -> None:
        self.store.append_text(message[1], text)
        self.model[message[0]].messages[message[1]].content += text

    @rule(message=messages, state=st.sampled_from(["complete", "stopped", "error"]))
    def finish(self, message: tuple[int, int], state: str) -> None:
        self.store.finish_message(message[1], state)
        self.model[message[0]].messages[message[1]].state = MessageState(state)

    @rule(message=messages)
    def select(self, message: tuple[int, int]) -> None:
        self.store.select(message[1])
        chat = self.model[message[0]]
        leaf = message[1]
        while below := [key for key, other in chat.messages.items() if other.parent_id == leaf]:
            newest = {key: max(self._descendants(chat, key)) for key in below}
            leaf = max(below, key=lambda key: newest[key])
        chat.leaf_id = leaf

    @rule(chat_id=chats)
    def delete(self, chat_id: int) -> None:
        self.store.delete(chat_id)
        self.model[chat_id].deleted = True

    @rule(chat_id=chats)
    def restore(self, chat_id: int) -> None:
        self.store.restore(chat_id)
        self.model[chat_id].deleted = False

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = ChatStore(self.path)
        for chat in self.model.values():
            for message in chat.messages.values():
                if message.state is MessageState.STREAMING:
                    message.state = MessageState.STOPPED

    @rule(words=st.lists(st.text(alphabet="abcXYZéÉ%_'\"\\*-鸟蜂🐦", min_size=1, max_size=4), min_size=1, max_size=2))
    def search(self, words: list[str]) -> None:
        found = {hit.message_id for hit in self.store.search(" ".join(words), limit=10_000) if hit.message_id}
        expected = {
            key
            for chat in self.model.values()
            if not chat.deleted
            for key, message in chat.messages.items()
            if message.state is not MessageState.STREAMING and all(_holds(message.content, word) for word in words)
        }
        assert found == expected

    @invariant()
    def the_same_chats_and_threads(self) -> None:
        if not hasattr(self, "store"):
            return
        listed = {chat.id: chat.title for chat in self.store.list_chats()}
        assert listed == {key: chat.title for key, chat in self.model.items() if not chat.deleted}
        for chat_id, chat in self.model.items():
            thread = self.store.thread(chat_id)
            assert [message.id for message in thread] == self._branch(chat)
            assert [(message.content, message.state) for message in thread] == [
                (chat.messages[key].content, chat.messages[key].state) for key in self._branch(chat)
            ]

    def _branch(self, chat: ModelChat) -> list[int]:
        branch: list[int] = []
        at = chat.leaf_id
        while at is not None:
            branch.append(at)
            at = chat.messages[at].parent_id
        return branch[::-1]

    def _descendants(self, chat: ModelChat, key: int) -> list[int]:
        below = [other for other, message in chat.messages.items() if message.parent_id == key]
        return [key] + [found for child in below for found in self._descendants(chat, child)]

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.reopen()  # finishes every message, so that the index must now equal the table
            self.store._connection.execute(
                "INSERT INTO message_search (message_search, rank) VALUES ('integrity-check', 1)"
            )
            self.store.close()
            self.folder.cleanup()


def _holds(content: str, word: str) -> bool:
    if len(word) < 3:
        return _ascii_lower(word) in _ascii_lower(content)
    return word.lower() in content.lower()


def _ascii_lower(text: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


ChatStoreMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=30)
TestChatStore = ChatStoreMachine.TestCase
