"""What a person can do here: values in, values out."""
