"""What puts the rooms together; hub/: one process for all clients of a person."""
