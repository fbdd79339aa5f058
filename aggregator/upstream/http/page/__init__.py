"""The page that shows a person what happens: its files, live activity, and what was saved."""
