"""Finding the right tool: `parse_query` says what is asked for, `Index.rank` who answers it.

Nothing is imported here: what a query is can be had without the index, which takes longer to
load than clients should wait.
"""
