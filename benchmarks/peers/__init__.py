"""What the product is compared with; each program runs in the Python of its own environment, `.venv-NAME`."""
