"""Two empty FastAPI endpoints, served as the service is: what HTTP itself costs.

``/asked`` is what people write with FastAPI: a coroutine that takes a model of the very body of a
query and gives a model back; it knows no caller, no database and no log. ``/`` takes nothing.
"""

from __future__ import annotations

import sys
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()


class Asked(BaseModel):
    dataset: str
    epsilon: str
    query: dict[str, Any]


class Answered(BaseModel):
    id: str
    status: str
    answer: dict[str, Any]


@app.post("/asked", status_code=201)
async def asked(asked: Asked) -> Answered:
    return Answered(id=asked.dataset, status="answered", answer={"value": 1})


@app.post("/")
async def empty() -> dict[str, str]:
    return {}


if __name__ == "__main__":
    uvicorn.run(
        app, port=int(sys.argv[1]), loop="auto", http="httptools", access_log=False, log_config=None
    )
