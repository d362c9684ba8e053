"""Who a person is: users, keys, sessions and sign-in."""
