"""What harms from outside: floods of frames, mutated files, brokers that lie (``nox -s nightly -- hostile``)."""
