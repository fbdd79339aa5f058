"""The rooms put together."""
