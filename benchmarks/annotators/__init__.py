"""Several labels per row: looselabels and its peers on the same answers.

`problems` draws crowds and reads real ones, `keywords` has labeling functions for 20 Newsgroups,
`methods` has ours and the peers, `tables` writes the section of benchmarks/README.md. The command
is benchmarks/quality_annotators.py.
"""
