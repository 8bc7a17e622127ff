"""Tests of the language room."""
