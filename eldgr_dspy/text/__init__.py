"""How text is read: folded characters, numbers, ends of sentences, thinking, what is stripped off an answer."""
