"""The seven channels on real text: retrieval, an NLI model or an LM, and the tables that they give."""
