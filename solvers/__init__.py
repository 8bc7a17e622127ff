"""The back ends: one folder each, and `dispatch`, the table that picks one."""
