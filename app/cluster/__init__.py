"""Kernels on other machines, by Dask: imported only where ``PURSE_CLUSTER`` names a scheduler.

    service ── tasks: a random name and a number ──▶ scheduler ──▶ workers
       └──────────── arrays, parts and what was found: the data folder ───┘

Dask hands out the work and notices who is lost. Nothing private goes through it.
"""
