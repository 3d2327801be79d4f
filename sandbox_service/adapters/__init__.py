"""How the sandbox service makes boxes on this machine."""
