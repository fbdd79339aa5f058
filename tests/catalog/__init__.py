"""What is known about all servers."""
