"""The analyst's desk: a web app on this machine over the same objects as the command line.

`declaration` is what an analyst says of a table, and the command that follows from it; `forms` reads it from a page.
`desk` is one folder with its tables, its account and its runs; `jobs` runs commands in processes of their own. `guard`
lets in whom it should, `pages` are what is seen, `server` starts it all.

The app computes nothing of its own: a fit is ``sfumato fit``, scores are ``sfumato transform``, and how far a fit has
come is read from the ledger.
"""
