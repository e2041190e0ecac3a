"""Workers, machines and drivers on Ray are killed: nothing is lost, and only what was under way is asked twice."""
