"""Private steps that see a `Door`, never a record: each asks, looks at the release, and asks again."""
