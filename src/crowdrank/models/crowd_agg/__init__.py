"""CrowdAgg: expected discounts of ranks, summed over annotators."""
