"""Plugins that decide what is hidden and what is asked."""
