"""Fakes and local servers that tests of this and other projects may use."""
