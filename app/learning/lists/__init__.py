"""Classes that are listed whole: thresholds, stumps, intervals, boxes, finite lists."""
