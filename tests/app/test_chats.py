"""The chat store: the tree of messages, undo, search, damage, and kills."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import chat_schema
from app.chats import ChatStore, ChatStoreError, Message, MessageState, Role

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.db"


@pytest.fixture
def store(path: Path) -> Iterator[ChatStore]:
    store = ChatStore(path)
    yield store
    store.close()


def texts(messages: list[Message]) -> list[str]:
    return [message.content for message in messages]


def test_a_chat_and_its_messages_survive_reopening(store: ChatStore, path: Path) -> None:
    chat = store.create_chat("Birds", system_prompt="Be brief.", model="m.gguf", sampling={"temperature": 0.2})
    question = store.add_message(chat.id, None, Role.USER, "How small is a hummingbird? 🐦")
    answer = store.add_message(chat.id, question.id, Role.ASSISTANT, state=MessageState.STREAMING)
    store.append_text(answer.id, "About ")
    store.append_text(answer.id, "two grams.")
    store.finish_message(answer.id, metrics={"tokens_per_second": 12.5})
    store.close()

    again = ChatStore(path)
    reread = again.list_chats()[0]
    assert (reread.title, reread.system_prompt, reread.model) == ("Birds", "Be brief.", "m.gguf")
    assert reread.sampling == {"temperature": 0.2}
    assert texts(again.thread(chat.id)) == ["How small is a hummingbird? 🐦", "About two grams."]
    assert again.thread(chat.id)[1].metrics == {"tokens_per_second": 12.5}
    again.close()


def test_another_answer_stands_beside_the_first(store: ChatStore) -> None:
    chat = store.create_chat()
    question = store.add_message(chat.id, None, "user", "Q")
    first = store.add_message(chat.id, question.id, "assistant", "A1")
    store.add_message(chat.id, first.id, "user", "Q2")
    second = store.add_message(chat.id, question.id, "assistant", "A2")
    assert texts(store.thread(chat.id)) == ["Q", "A2"]
    assert texts(store.siblings(second)) == ["A1", "A2"]
    assert texts(store.select(first.id)) == ["Q", "A1", "Q2"]
    assert texts(store.thread(chat.id)) == ["Q", "A1", "Q2"]


def test_first_messages_are_siblings_of_each_other_within_their_chat(store: ChatStore) -> None:
    chat, other = store.create_chat(), store.create_chat()
    one = store.add_message(chat.id, None, "user", "one")
    store.add_message(other.id, None, "user", "elsewhere")
    store.add_message(chat.id, None, "user", "two")
    assert texts(store.siblings(one)) == ["one", "two"]


def test_a_parent_of_another_chat_is_refused(store: ChatStore) -> None:
    chat, other = store.create_chat(), store.create_chat()
    message = store.add_message(other.id, None, "user", "x")
    with pytest.raises(ChatStoreError, match=f"message {message.id} does not belong to chat {chat.id}"):
        store.add_message(chat.id, message.id, "user", "y")
    assert store.thread(chat.id) == []


def test_a_message_for_a_chat_that_does_not_exist_is_refused(store: ChatStore) -> None:
    with pytest.raises(ChatStoreError, match="does not exist"):
        store.add_message(77, None, "user", "x")


def test_deleting_can_be_undone_until_the_chat_is_purged(store: ChatStore) -> None:
    chat = store.create_chat("gone?")
    store.add_message(chat.id, None, "user", "remember the milk")
    store.delete(chat.id)
    assert store.list_chats() == []
    assert store.search("milk") == []
    assert store.restore(chat.id).title == "gone?"
    assert [hit.chat_id for hit in store.search("milk")] == [chat.id]

    store.delete(chat.id)
    assert not store.purge_one(older_than_s=3600)
    assert store.purge_one(older_than_s=-1)
    assert not store.purge_one(older_than_s=-1)
    with pytest.raises(ChatStoreError, match="no chat"):
        store.restore(chat.id)


def test_pinned_chats_come_first_then_the_ones_spoken_in_last(store: ChatStore) -> None:
    chats = [store.create_chat(title) for title in "abc"]
    store.update(chats[1].id, pinned=True, folder="work")
    store.add_message(chats[0].id, None, "user", "hello")
    store.rename(chats[2].id, "c, renamed")
    assert [chat.title for chat in store.list_chats()] == ["b", "a", "c, renamed"]
    assert store.chat(chats[1].id).folder == "work"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("hummingbird", {"A Hummingbird hovers.", "hummingbirds, 100%_sure"}),
        ("HUMMING bird", {"A Hummingbird hovers.", "hummingbirds, 100%_sure"}),
        ("A", {"A Hummingbird hovers.", "a\\b"}),
        ("0%", {"hummingbirds, 100%_sure"}),
        ("%", {"hummingbirds, 100%_sure"}),
        ("_s", {"hummingbirds, 100%_sure"}),
        ("\\", {"a\\b"}),
        ("蜂鸟", {"蜂鸟很小"}),
        ("蜂鸟很", {"蜂鸟很小"}),
        ('quoted "word', set()),
        ('"', {'say "cheese" AND smile'}),
        ('"cheese" AND', {'say "cheese" AND smile'}),
        ("eagle", set()),
        ("", set()),
        ("   ", set()),
    ],
)
def test_search_finds_every_word_in_any_case_and_language(store: ChatStore, query: str, expected: set[str]) -> None:
    contents = ["A Hummingbird hovers.", "hummingbirds, 100%_sure", "a\\b", "蜂鸟很小", 'say "cheese" AND smile']
    chat = store.create_chat("t")
    for content in contents:
        store.add_message(chat.id, None, "user", content)
    found = {store.message(hit.message_id).content for hit in store.search(query) if hit.message_id is not None}
    if query == "A":
        expected = {content for content in contents if "a" in content.lower()}
    assert found == expected


def test_search_finds_titles_before_messages_and_shows_the_place(store: ChatStore) -> None:
    chat = store.create_chat("About falcons")
    store.add_message(chat.id, None, "user", "x" * 500 + " a falcon dives " + "y" * 500)
    title, message = store.search("falcon")
    assert (title.message_id, title.excerpt) == (None, "About falcons")
    assert "a falcon dives" in message.excerpt
    assert len(message.excerpt) < 200


def test_a_streaming_answer_is_found_when_it_is_finished_and_after_a_change(store: ChatStore) -> None:
    chat = store.create_chat()
    answer = store.add_message(chat.id, None, "assistant", state="streaming")
    store.append_text(answer.id, "swift")
    assert store.search("swift") == []
    store.finish_message(answer.id)
    assert len(store.search("swift")) == 1
    store.finish_message(answer.id, content="martin")
    assert store.search("swift") == []
    assert len(store.search("martin")) == 1


def test_text_that_sqlite_cannot_keep_is_mended(store: ChatStore) -> None:
    chat = store.create_chat("nul \0 and \ud800")
    message = store.add_message(chat.id, None, "user", "a\0b\udfffc")
    assert message.content == "a\ufffdb\ufffdc"
    assert chat.title == "nul \ufffd and \ufffd"


def test_answers_that_a_killed_program_left_are_marked_stopped(store: ChatStore, path: Path) -> None:
    chat = store.create_chat()
    store.add_message(chat.id, None, "assistant", "half an ans", state="streaming")
    store.close()
    again = ChatStore(path)
    assert again.thread(chat.id)[0].state is MessageState.STOPPED
    assert len(again.search("half")) == 1
    again.close()


def test_a_second_program_leaves_the_firsts_streaming_answer_alone(store: ChatStore, path: Path) -> None:
    chat = store.create_chat()
    answer = store.add_message(chat.id, None, "assistant", "half", state="streaming")
    second = ChatStore(path)
    assert second.message(answer.id).state is MessageState.STREAMING
    second.close()
    store.append_text(answer.id, " and half")
    assert store.finish_message(answer.id).content == "half and half"


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    path.write_bytes(b"this is not SQLite" * 100)
    with pytest.raises(ChatStoreError, match=r"chats\.db: the chats cannot be opened.*move it away"):
        ChatStore(path)
    assert path.read_bytes() == b"this is not SQLite" * 100


def test_a_file_of_a_newer_colibri_is_refused_with_both_versions(store: ChatStore, path: Path) -> None:
    store.close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    newest = len(chat_schema.MIGRATIONS)
    with pytest.raises(ChatStoreError, match=f"version {newest} or older, found version 99"):
        ChatStore(path)


def test_an_older_file_is_copied_before_it_is_changed_and_a_failed_step_changes_nothing(
    store: ChatStore, path: Path
) -> None:
    chat = store.create_chat("kept")
    store.close()
    connection = sqlite3.connect(path, isolation_level=None)
    old = len(chat_schema.MIGRATIONS)
    broken = (*chat_schema.MIGRATIONS, "ALTER TABLE chats ADD COLUMN colour TEXT; INSERT INTO nowhere VALUES (1);")
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        chat_schema.migrate(connection, path, broken)
    assert connection.execute("PRAGMA user_version").fetchone() == (old,)
    assert "colour" not in [row[1] for row in connection.execute("PRAGMA table_info(chats)")]

    chat_schema.migrate(connection, path, (*chat_schema.MIGRATIONS, "ALTER TABLE chats ADD COLUMN colour TEXT;"))
    assert connection.execute("PRAGMA user_version").fetchone() == (old + 1,)
    connection.close()
    copy = ChatStore(path.with_name(f"chats.db.version-{old}.backup"))
    assert copy.chat(chat.id).title == "kept"
    copy.close()


def test_chats_of_the_first_version_open_and_can_hold_reasoning(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    chat_schema.migrate(connection, path, chat_schema.MIGRATIONS[:1])
    connection.execute("INSERT INTO chats (title, created_at, updated_at) VALUES ('old', 1, 1)")
    connection.execute(
        "INSERT INTO messages (chat_id, role, content, created_at, state) VALUES (1, 'assistant', 'Yes', 1, 'complete')"
    )
    connection.close()
    store = ChatStore(path)
    assert (store.message(1).content, store.message(1).reasoning) == ("Yes", "")
    store.append_text(1, "", reasoning="Hm")
    store.append_text(1, "!", reasoning="…")
    assert (store.message(1).content, store.message(1).reasoning) == ("Yes!", "Hm…")
    assert [hit.excerpt for hit in store.search("Yes!")] and not store.search("Hm…")
    store.close()


def test_damaged_figures_cost_only_themselves(store: ChatStore, path: Path) -> None:
    chat = store.create_chat("fine", sampling={"top_k": 3})
    store.add_message(chat.id, None, "user", "still here")
    connection = sqlite3.connect(path)
    connection.execute("UPDATE chats SET sampling = '{\"top_k\"'")
    connection.execute("UPDATE messages SET metrics = '[1]'")
    connection.commit()
    connection.close()
    assert store.chat(chat.id).sampling == {}
    assert texts(store.thread(chat.id)) == ["still here"]
    assert store.thread(chat.id)[0].metrics == {}


def test_sync_works_in_another_thread_and_empties_the_log(store: ChatStore, path: Path) -> None:
    chat = store.create_chat()
    for number in range(50):
        store.add_message(chat.id, None, "user", f"message {number}")
    n_bytes_before = path.stat().st_size
    thread = threading.Thread(target=store.sync)
    thread.start()
    thread.join()
    assert path.stat().st_size > n_bytes_before  # the checkpoint moved the pages into the file
    store.close()
    store.sync()  # after closing there is nothing left to do


WRITER = """
import sys
from pathlib import Path
from app.chats import ChatStore

store = ChatStore(Path(sys.argv[1]))
chat = store.create_chat("long answer")
question = store.add_message(chat.id, None, "user", "the question")
answer = store.add_message(chat.id, question.id, "assistant", state="streaming")
n = 0
while True:
    store.append_text(answer.id, f"{n} ")
    n += 1
    print(n, flush=True)
"""


@pytest.mark.parametrize("pause_s", [0.0, 0.05, 0.2])
def test_kill_9_loses_nothing_that_was_appended(path: Path, pause_s: float) -> None:
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(pause_s)
    process.send_signal(signal.SIGKILL)
    confirmed = [line for line in process.stdout.read().split("\n") if line]
    process.wait()

    store = ChatStore(path)
    question, answer = store.thread(store.list_chats()[0].id)
    assert question.content == "the question"
    assert answer.state is MessageState.STOPPED
    n_saved = len(answer.content.split())
    n_confirmed = int(confirmed[-1]) if confirmed else 1
    assert answer.content == "".join(f"{number} " for number in range(n_saved))
    assert n_confirmed - 1 <= n_saved <= n_confirmed + 1
    store.close()


def test_no_call_reads_all_messages_of_the_store(store: ChatStore) -> None:
    chat = store.create_chat("one of many")
    question = store.add_message(chat.id, None, "user", "start")
    answer = store.add_message(chat.id, question.id, "assistant", state="streaming")
    statements: list[str] = []
    store._connection.set_trace_callback(statements.append)
    store.add_message(chat.id, question.id, "assistant", "another answer")
    store.append_text(answer.id, "x")
    store.finish_message(answer.id)
    store.thread(chat.id)
    store.path_to(answer.id)
    store.siblings(answer)
    store.select(answer.id)
    store.list_chats()
    store.search("another start")
    store.delete(chat.id)
    store._connection.set_trace_callback(None)

    planned = [
        text for text in statements if text.lstrip().startswith(("SELECT", "UPDATE", "WITH", "DELETE", "INSERT"))
    ]
    assert len(planned) >= 12
    for statement in planned:
        steps = [row[3] for row in store._connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
        assert not [step for step in steps if re.match(r"SCAN messages\b", step)], (statement, steps)
