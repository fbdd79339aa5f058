"""Servers as child processes, and the watchdog that none outlives."""
