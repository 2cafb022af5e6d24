cdef str unquote(str text, bint plus)
"""Percent-decode; None when an escape is malformed. The one decoder of paths: router and request info must agree."""
