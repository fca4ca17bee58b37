"""Random programs, torch's own databases of operators, and planted faults."""
