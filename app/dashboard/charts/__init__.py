"""Drawings as SVG that shows under the strictest policy: shapes with attributes and class names.

Pure functions of numbers that the page shows in a table beside the drawing.
"""
