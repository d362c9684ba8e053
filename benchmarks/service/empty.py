"""Two empty FastAPI endpoints, served as the service is: what HTTP itself costs.

``/asked`` is what people write with FastAPI: a coroutine that takes a model of the very body of a
query and gives a model back; it knows no caller, no database and no log. ``/`` takes nothing.
"""

import sys
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()


class Body(BaseModel):
    dataset: str
    epsilon: str
    query: dict[str, Any]


class Answer(BaseModel):
    id: str
    status: str
    answer: dict[str, Any]


@app.post("/asked", status_code=201)
async def answered(body: Body) -> Answer:
    return Answer(id=body.dataset, status="answered", answer={"value": 1})


@app.post("/")
@app.get("/readyz")
async def empty() -> dict[str, str]:
    return {}


if __name__ == "__main__":
    port = int(sys.argv[-1])
    uvicorn.run(app, port=port, loop="auto", http="httptools", access_log=False, log_config=None)
