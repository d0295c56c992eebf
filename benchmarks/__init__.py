"""How long people and runs wait for each other, as ratios to what the machine can do at best. See README.md here.

Not part of the product and not a test: numbers are printed, never asserted.
"""
