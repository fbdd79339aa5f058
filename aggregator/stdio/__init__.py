"""Talk to a child process over its standard streams, and leave nothing of it behind."""
