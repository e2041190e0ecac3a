"""How a request reaches an LM and how its reply is read."""
