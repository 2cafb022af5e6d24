"""What a request means: its context, its user, its failure as a Status."""
