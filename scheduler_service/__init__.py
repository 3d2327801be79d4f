"""The scheduler: decides what runs next and how much may be in flight."""
