"""Custom resources: what a CustomResourceDefinition makes of itself while the server runs.

`schema/` is what one version's schema does to objects (no I/O, no server); the modules beside it keep the definitions,
their conditions and the resources they serve.
"""
