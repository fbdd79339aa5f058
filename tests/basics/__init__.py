"""The small concepts that every room uses."""
