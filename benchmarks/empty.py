"""The least that FastAPI can do, served as the service is: what HTTP itself costs."""

from __future__ import annotations

import sys

import uvicorn
from fastapi import FastAPI

app = FastAPI()


@app.post("/")
async def empty() -> dict[str, str]:
    return {}


if __name__ == "__main__":
    uvicorn.run(
        app, port=int(sys.argv[1]), loop="auto", http="httptools", access_log=False, log_config=None
    )
