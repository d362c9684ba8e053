"""The pages at ``/ui``: what the API offers, for people with a browser.

Every page calls the use case that the API's route calls, so it shows nothing that the API refuses
to its caller. One file in ``views`` is one page with its parts.
"""
