"""The owner's workshop: drafts a public description, and checks a file, on the owner's machine.

Nothing here sends anything. What is found in the records stands in a report for the owner alone,
and never in a draft, because a description is public.
"""
