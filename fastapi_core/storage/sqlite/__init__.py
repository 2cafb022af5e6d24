"""The durable embedded back end."""
