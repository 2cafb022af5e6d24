"""Watch cache over any storage: current objects as bytes, a window of recent events, watchers."""
