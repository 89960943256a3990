"""How fast and how good memdb is, as ratios within one run: `python -m benchmarks speed` and `... quality`."""
