"""Several processes behind one address, none of which has to know of the others."""
