"""Finding a tool by what is meant: an extra, and the one room with weights of its own.

A process of its own holds the model and the vectors of the catalog, so that neither importing nor
computing ever stands in the way of an answer, and it ends with ours. Nothing is imported here:
that process must not carry what it has no use for.
"""
