"""Domain packs: what one is, how one is found and loaded."""
