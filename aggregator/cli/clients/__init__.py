"""The files of other programs: what they hold, and what is changed in them."""
