"""HTTP around the engines. All of Patra's asynchronous code is here; handlers are plain functions.

| file | in | out |
|---|---|---|
| `problem` | refusals, errors | `application/problem+json` with a stable code |
| `auth` | a request's headers | who is asking, or why they may not |
| `endpoint` | | the row of the table: method, path, role, types, handler |
| `body` | a body that streams in | its bytes, or a refusal when they are too many |
| `dispatch` | a request for one path | the handler's answer, within bounds of size and time |
| `openapi` | the table | an OpenAPI 3.1 document |
| `api` | a `Patra` | the tables: the process's own, and one an engine |
| `server` | the tables | the ASGI application |
| `serving` | an address | the application served by uvicorn until it is asked to stop |
"""
