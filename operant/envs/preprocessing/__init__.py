"""Between an environment and the agent: observations in, actions out, and masks over actions."""
