"""How strong the suite is: released bugs that it finds again, and mistakes in real clients that it kills."""
