"""Records on their way to the service: as files, from objects of other libraries, from sources."""
