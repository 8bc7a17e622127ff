"""Bad programs and what the language says about them: `NNN_what.spl` beside `NNN_what.txt`."""
