"""The shared library: records, bus, objects, rpc, settings, observe, cli. It knows no service."""
