"""The conversation: chat list, messages, Markdown, composer."""
