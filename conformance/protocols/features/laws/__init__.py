"""Laws of feature versions for the search of all orders, one module for each machine."""
