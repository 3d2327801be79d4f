"""gRPC as every service and client uses it: one server, one channel, errors mapped in one place."""
