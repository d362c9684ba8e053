"""The dashboard: pages at ``/ui`` that offer the functions of the HTTP API in a browser.

Every page calls the same use case as the API's route, so it shows nothing that the API refuses to
its caller. Each file in ``views`` contains the routes of one page and of its parts.
"""
