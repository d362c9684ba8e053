"""Tables: grouped counts, sums, means, variances and quantiles of rows for one charge."""
