"""The result guard: what is too large for a model is shortened, kept, and read again."""
