"""Episodes: the turn protocol and scripted demonstrations."""
