"""How conversations become tokens and back: the tokenizer and the compact form of tool calls."""
