"""What a model's answer is made of: text for the reader, reasoning, and calls of tools."""

from engine.chat.answer_parser import AnswerParser
from engine.chat.chat_format import ChatFormat
from engine.chat.pieces import AnswerKind, Piece, ToolCall

__all__ = ["AnswerKind", "AnswerParser", "ChatFormat", "Piece", "ToolCall"]
