"""Live panels that show the engine at work."""
