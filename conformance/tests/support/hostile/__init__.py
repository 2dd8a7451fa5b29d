"""What somebody may send who means harm: see ``test_hostile``."""
