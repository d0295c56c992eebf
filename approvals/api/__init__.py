"""The JSON API of what people decide: pauses, permission requests as m8tes clients know them, standing rules."""
