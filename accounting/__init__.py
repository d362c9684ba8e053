"""Privacy loss, accounts and composition: exact integer arithmetic, standard library only."""
