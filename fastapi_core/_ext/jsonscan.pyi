"""One pass over a JSON text: well-formedness limits and duplicate keys, without building a tree."""

def duplicate_keys(body: bytes, max_depth: int) -> list[str]:
    """Paths (`spec.containers[0].name`) of keys that stand twice in one object, in order; empty for almost every body.

    Raises ValueError when nesting exceeds `max_depth`. The body need not be valid JSON: the decoder proper says that.
    """
