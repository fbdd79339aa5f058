"""Who comes in by the word of an issuer: tokens that it has signed, and the keys to see that."""
