"""Workloads of fixed size and seed, in which crowdrank and its peers are timed side by side.

``python -m benchmarks`` from the project's root runs them all; ``python -m benchmarks --help`` lists them.
One file per workload; a new one is a file with ``WORKLOAD`` and a line in :mod:`benchmarks.table`.
"""
