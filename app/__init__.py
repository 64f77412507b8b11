"""What the program does, without a window: chats, models, settings, jobs, the engine's thread, the commands."""
