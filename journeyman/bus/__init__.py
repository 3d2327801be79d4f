"""The bus: topics, groups, offsets and replay behind one port."""
