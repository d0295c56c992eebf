"""The pages of runs, agents and servers. Thin: parse, call a service, render."""
