"""The page of the system check."""
