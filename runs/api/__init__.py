"""The JSON API of what agents do: views, and what the views of other apps build on."""
