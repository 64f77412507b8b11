"""What the pages that make model files share: steps, progress, ends, and advice on failures."""
