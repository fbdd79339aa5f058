"""Finding the right tool: `parse_query(text)` and `Index.rank(query, limit)`.

Import from the parts: clients are not kept waiting for the index.
"""
