"""When and where work runs: answering, deadlines, waiting, threads, uploads, repeated work."""
