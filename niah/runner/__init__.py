"""From a config to rows on disk: plan, loop, canary, limits, batches."""
