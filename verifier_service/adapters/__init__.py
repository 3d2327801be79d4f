"""The outside world of the verifier: grader processes."""
