"""HTTP around the engines. All of Patra's asynchronous code is here; handlers are plain functions.

| folder or module | for |
|---|---|
| `problem` | refusals and errors as `application/problem+json` with a stable code |
| `auth`, `scopes` | who is asking, or why they may not; what a token is bound to |
| `failed_attempts`, `request_rates` | wrong tokens slowed; rates by address and token |
| `endpoint` | a row of the table: method, path, role, types, handler |
| `body`, `dispatch` | a request within bounds of size and time |
| `openapi` | the table as an OpenAPI 3.1 document |
| `console/` | the pages |
| `api/` | the tables: the process's own, and one per engine |
| `asgi`, `protocol` | the ASGI application; bounds below HTTP |
| `uvicorn_server` | the application served until it is asked to stop |
"""
