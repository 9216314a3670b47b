"""Plugins that judge an answer."""
