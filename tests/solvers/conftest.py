"""Makes `problems` and `brute_force` importable for the tests of every back end (pytest puts this folder on the path)."""
