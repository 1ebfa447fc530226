"""Reproductions of published tables and figures: what was printed beside what is measured, by public names only."""
