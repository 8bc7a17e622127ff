"""What people see: explanations, plots, pages, tables, messages and progress bars.

In: problems, results, diagnostics. Out: text, figures, files. Nothing is computed here that a result doesn't know.
"""
