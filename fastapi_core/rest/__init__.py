"""Verb handlers: one file per verb."""
