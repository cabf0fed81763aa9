"""What is written to a cluster: bindings, conditions, Events, status of PodGroups."""
