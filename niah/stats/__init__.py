"""Statistics of accuracy: intervals, paired comparison, power."""
