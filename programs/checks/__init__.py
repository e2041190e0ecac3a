"""How `check_selector` tries a selector or a program: scenes, invocations, and what must hold in them."""
