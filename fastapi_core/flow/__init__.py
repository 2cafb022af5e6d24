"""API Priority and Fairness: who is served when there is more to do than seats (filters/flow.py puts it in the chain)."""
