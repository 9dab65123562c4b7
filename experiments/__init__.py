"""The experiments of the paper; run them with ``python -m experiments``."""
