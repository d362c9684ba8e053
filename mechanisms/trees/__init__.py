"""Decision trees: private growing of one (``id3``) and private search for several
(``evolutionary``)."""
