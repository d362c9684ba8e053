"""Empty FastAPI endpoints, served as the service is: what HTTP itself costs.

``/asked`` is what people write with FastAPI: a coroutine that takes a model of the very body of a
query and gives a model back; it knows no caller, no database and no log. ``/same`` takes and gives
the models of the service itself. ``/`` takes nothing.
"""

import sys
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from app.contract.queries import QueryOut
from app.engine.requests import QueryRequest

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


@app.post("/same", status_code=201)
async def same(request: QueryRequest) -> QueryOut:
    return QueryOut(  # type: ignore[call-arg]  # by the names of the row
        id="1",
        status="answered",
        analyst="analyst",
        dataset=request.dataset,
        version=1,
        request={"query": request.query.model_dump(mode="json")},
        question="How many records are there?",
        stated_charge={"epsilon": "0.001", "delta": "0", "rho": "0.0000005"},
        created_us=0,
        release_us=0,
    )


@app.post("/")
@app.get("/readyz")
async def empty() -> dict[str, str]:
    return {}


if __name__ == "__main__":
    port = int(sys.argv[-1])
    uvicorn.run(app, port=port, loop="auto", http="httptools", access_log=False, log_config=None)
