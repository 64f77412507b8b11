"""The conversation in a terminal: prompt, history, a few commands; and its bare form, a message per line."""

from __future__ import annotations

import sys
from pathlib import Path

from app import paths
from app.commands.chat_session import ChatSession, TerminalAnswer
from app.commands.output import ReasoningWriter, say, write
from engine.errors import ColibriError, InvalidRequestError

_PROMPT = "> "
_CONTINUED = "… "
_HISTORY_LINES = 1000
_HELP = """\
/reset    forget the conversation          /stats   figures of the last answer
/think    how long the model thinks        /help    this text
/quit     end (also Ctrl-D)
A line that ends with \\ goes on in the next. Ctrl-C stops an answer."""


def converse(session: ChatSession) -> None:
    """Talk until the user ends it."""
    info = session.engine.info
    say(f"{info.name}, {info.type_name}. /help for help, Ctrl-D to end.")
    last: TerminalAnswer | None = None
    with_history = load_history(paths.data_dir() / "terminal_history")
    while True:
        try:
            question = read_message()
        except EOFError:
            say("")
            break
        except KeyboardInterrupt:
            say("\nCtrl-D ends the chat.")
            continue
        match question.strip():
            case "":
                continue
            case "/quit" | "/exit":
                break
            case "/help":
                say(_HELP)
            case "/reset":
                session.reset()
                say("Forgotten.")
            case command if command.split()[0] == "/think":
                say(_think(session, command.split()[1:]))
            case "/stats":
                say(describe(last) if last else "Nothing was answered yet.")
            case _:
                last = _answer(session, question) or last
    if with_history is not None:
        save_history(with_history)


def _think(session: ChatSession, words: list[str]) -> str:
    """Carry out /think; what is to be said about it."""
    thinking = session.engine.chat_prompts.thinking
    if not thinking.choices:
        return "This model's chat template has no setting for thinking."
    if len(words) != 1:
        usual = f" Usual: {thinking.usual}." if thinking.usual else ""
        return f"/think {'|'.join(thinking.choices)}.{usual}"
    try:
        session.think(words[0])
    except InvalidRequestError as error:
        return str(error)
    return f"Thinking: {words[0]}."


def converse_by_lines(session: ChatSession) -> None:
    """Answer each line of standard input, printing the answers and nothing else."""
    for number, data in enumerate(sys.stdin.buffer, start=1):
        try:
            question = data.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise InvalidRequestError(
                f"standard input, line {number}: expected UTF-8 text, found the byte 0x{data[error.start]:02x} "
                f"at offset {error.start} of the line."
            ) from error
        if question:
            answer = session.answer(question, write)
            write("" if answer.text.endswith("\n") else "\n")


def describe(answer: TerminalAnswer) -> str:
    """An answer's figures in one line."""
    figures = answer.figures()
    return (
        f"{figures['completion_tokens']} tokens, {figures['decode_tokens_per_second']} tok/s, first after "
        f"{figures['ttft_ms']:.0f} ms; prompt {figures['prompt_tokens']} tokens "
        f"({answer.reused_tokens} remembered), {figures['prefill_tokens_per_second']} tok/s"
    )


def read_message() -> str:
    """One message from the terminal, which may be several lines."""
    lines = [input(_PROMPT)]
    while lines[-1].endswith("\\"):
        lines[-1] = lines[-1][:-1]
        lines.append(input(_CONTINUED))
    return "\n".join(lines)


def load_history(path: Path) -> Path | None:
    """Let the arrow keys find earlier messages; None where Python has no readline."""
    try:
        import readline  # noqa: PLC0415
    except ImportError:
        return None
    try:
        readline.read_history_file(path)
    except OSError:  # the first time there is none; an unreadable one is no reason not to talk
        return path
    return path


def save_history(path: Path) -> None:
    """Keep the newest messages for the next time."""
    import readline  # noqa: PLC0415

    readline.set_history_length(_HISTORY_LINES)
    try:
        readline.write_history_file(path)
        path.chmod(0o600)
    except OSError as error:
        say(f"The history could not be saved in {path}: {error.strerror}")


def _answer(session: ChatSession, question: str) -> TerminalAnswer | None:
    writer = ReasoningWriter()
    try:
        answer = session.answer(question, writer.answer, writer.reasoning)
    except ColibriError as error:
        writer.close()
        say(str(error))
        return None
    writer.close()
    write("\n\n" if not answer.text.endswith("\n") else "\n")
    if answer.finish_reason == "cancelled":
        say("(stopped)")
    elif answer.finish_reason == "context":
        say("(the context is full: /reset starts anew)")
    return answer
