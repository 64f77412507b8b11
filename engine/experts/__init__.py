"""The routed experts: where their weights are, which are in memory, which give way."""
