"""One runnable module per claim about speed or cost: `python -m benchmarks.NAME --json - [--quick]`. Each measures us beside a peer or a
physical limit in the same run. journeyman and the services never import it."""
