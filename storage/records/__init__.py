"""The data folder: prepared versions on disk, opened versions, tickets of uploads, retention."""
