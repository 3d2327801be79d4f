"""Inference engines behind one port; the only place of this service that may import torch."""
