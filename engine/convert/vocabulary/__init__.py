"""Tokenizer files of published checkpoints, and what GGUF makes of them."""
