"""One process for all clients of a person: it holds the fleets, and serves every stream."""
