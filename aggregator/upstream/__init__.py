"""What faces clients: a request, answered from what is known now, in the form of its era."""
