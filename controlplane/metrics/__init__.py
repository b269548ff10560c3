"""What switches count, as metrics: the one list of their names, the Prometheus endpoint and the Grafana dashboard."""
