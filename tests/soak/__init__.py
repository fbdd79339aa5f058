"""The long runs: each row of `docs/reliability.md`, measured."""
