"""One process for all clients: what they share, what not, and the bad worlds around it."""
