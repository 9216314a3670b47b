"""What a model is without loading it: its config, shape and known names."""
