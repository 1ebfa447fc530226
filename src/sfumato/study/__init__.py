"""A study as its user declares it, still as text: the table and its columns, the estimator and its options, bounds.

The command line and the web app make the same objects of it; nothing is read from the records before a fit.
"""
