"""looselabels' defaults beside the peers: the same rows, the same labels, the same base classifier.

`problems` makes loose labels out of true classes, `ours` and `peers` answer, `metrics` scores the
answers, `grid` runs what is missing, `results` keeps it, `tables` and `verdicts` say how it went.
"""
