"""Pure decisions of the verifier."""
