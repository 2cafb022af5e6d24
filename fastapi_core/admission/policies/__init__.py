"""Admission policies: rules written as expressions in objects of the store, and the bindings that put them in force."""
