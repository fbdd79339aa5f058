"""What passes between a client and a server besides tools, in either era."""
