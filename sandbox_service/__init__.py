"""The sandbox service: runs untrusted code; the only place that does."""
