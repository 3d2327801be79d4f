"""What a tool sees of a sandbox, and its clients."""
