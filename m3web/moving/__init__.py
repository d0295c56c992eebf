"""An account as one file, and back: how it moves from one installation to another (docs/moving.md).

`tables` says what goes along, `rows` how a row is written, `files` what a file looks like and when it is refused,
`exporting` and `importing` do the work of the two commands. Closing the account it came from is `runs.closing`.
"""
