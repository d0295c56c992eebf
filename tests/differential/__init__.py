"""Our managed-input store and the reference, driven by the same calls."""
