"""The window: Qt widgets that draw what app/ holds, and ask it for what the user wants."""
