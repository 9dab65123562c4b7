"""Compare looselabels with its peers: same rows, same labels, same base classifier.

`problems` turns true classes into loose labels. `ours` and `peers` solve the problems, `metrics`
scores the solutions, `grid` runs the missing cells, and `results` stores the scores. `scores`
compares methods, `targets` checks what was to be reached, `tables` and `wrong_labels` write
docs/quality-tables.md, and `page` writes docs/quality.md.
"""
