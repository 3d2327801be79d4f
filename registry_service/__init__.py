"""Registry service: policies with their lineage, evaluations over domains, the release gate."""
