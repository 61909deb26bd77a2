"""Functions internal to PyFlink that programs use nevertheless: the hashes of its windows."""

from __future__ import annotations


def mod_inverse(x: int) -> int:
    """The inverse of an odd number modulo 2 ** 32, by Newton's method; as in PyFlink, not reduced to 32 bits."""
    inverse = x**3
    for _ in range(3):
        inverse *= 2 - x * inverse
    return inverse


def long_to_int_with_bit_mixing(x: int) -> int:
    """The last step of SplitMix64; as in PyFlink, not reduced to 64 bits."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        x = (x ^ (x >> shift)) * factor
    return x
