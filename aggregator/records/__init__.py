"""What is kept of what happens: stats, audit, metrics and spans, each a listener of its own."""
