"""Token-exact prompts from text, and the protocols of tasks, haystacks and scorers."""
