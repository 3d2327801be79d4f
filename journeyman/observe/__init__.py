"""What a service tells of itself: JSON logs with bound ids, Prometheus metrics, W3C traces."""
