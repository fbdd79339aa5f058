"""Logins: the records by which remote servers may be used in a person's name."""
