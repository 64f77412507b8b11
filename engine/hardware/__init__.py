"""What this machine is: CPU, caches, memory."""
