"""The process that makes boxes by cloning itself, outside of them and apart from the service."""
