"""Admission webhooks: other servers that may change or refuse what is about to be stored."""
