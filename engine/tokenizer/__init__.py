"""Text to token ids and back, and conversations to prompts, from what a GGUF file says of itself."""

from engine.tokenizer.chat_template import ChatTemplate
from engine.tokenizer.stream import StreamDecoder
from engine.tokenizer.tokenizer import Tokenizer

__all__ = ["ChatTemplate", "StreamDecoder", "Tokenizer"]
