"""Plugins that give the text in which needles are hidden."""
