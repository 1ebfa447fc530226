"""Private steps that see a `Curator`, never a record: each asks, looks at the release, and asks again."""
