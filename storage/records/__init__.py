"""The data folder: prepared versions on disk, open versions, tickets of uploads, retention."""
