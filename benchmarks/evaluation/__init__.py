"""The evaluations of the papers, again: JANUS's, Jittor's and Terra's (benchmarks/evaluate.py).

`paper.py` has what the papers say, `cells.py` what is measured one by one and kept, `parts.py` what there is to
measure, and `pages.py` makes docs/evaluation of what was. Only what measures imports torch.
"""
