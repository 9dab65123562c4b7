"""The paper's experiments: data → problems → cells → rows → figures. ``python -m experiments``."""
