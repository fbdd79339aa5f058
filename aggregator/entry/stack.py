"""Room on Python's stack."""

from types import FunctionType

ROOM = 64 << 10
"""Bytes of the stack that a program takes for itself at once, to have as many for what it calls."""
_WORD = 8


def roomy(program: FunctionType) -> FunctionType:
    """Have a program run on one large piece of Python's stack, with all that it calls.

    Pieces are of 16 KiB, and each is given back to the system as soon as it is left: a loop that
    happens to run where one ends asks for the next in every turn. By how deep it was imported, the
    SDK took up to an eighth longer to load. A call that needs more than a piece gets a larger one,
    of which there is about half left for others.
    """
    code = program.__code__.replace(co_stacksize=ROOM // _WORD)
    return FunctionType(code, program.__globals__, program.__name__, None, program.__closure__)
