"""Controllers of feature versions with one planted defect each, one module for each machine."""
