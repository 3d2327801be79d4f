"""Figures of the verifier."""

from prometheus_client import Counter, Histogram

VERDICTS_TOTAL = Counter("verifier_verdicts_total", "Verdicts by domain and status.", ("domain", "status"))
GROUP_SECONDS = Histogram("verifier_group_seconds", "Time to judge one recorded object.", ("domain",))
