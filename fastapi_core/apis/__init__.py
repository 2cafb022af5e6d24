"""The built-in resources: declarations, defaults and strategies of the kinds the reference serves."""
