"""The pages at ``/ui``: what the API offers, for people with a browser.

Every view calls the function that the API's route calls, so a page shows nothing that the API does
not tell its caller. One file in ``views`` is one page with what belongs to it.
"""
