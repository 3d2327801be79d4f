"""The kernel's interfaces that Python does not offer, by ctypes."""
