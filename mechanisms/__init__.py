"""The mathematics: records in, released values out; randomness is an argument."""
