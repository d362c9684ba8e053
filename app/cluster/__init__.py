"""Kernels on other machines, by Dask: imported only where ``PURSE_CLUSTER`` names a scheduler.

    service ── tasks: a random name and a number ──▶ scheduler ──▶ workers
       └──────────── arrays, parts and results: the data folder ──────────┘

Dask distributes the tasks and detects lost workers. No private data passes through it.
"""
