"""How an extension gets behind an API server: the objects of a registration, applied, waited for and taken back."""
