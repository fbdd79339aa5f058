"""All servers at once, and what is known of them now."""
