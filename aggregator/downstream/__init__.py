"""What faces servers: one task for each, its link, and what it lists."""
