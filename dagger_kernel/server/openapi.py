"""The OpenAPI 3.1 description of the REST API; tests hold the handlers to it."""

from __future__ import annotations

from typing import Any

from .._version import __version__

Schema = dict[str, Any]


def _object(properties: dict[str, Schema], optional: tuple[str, ...] = (), **more: Any) -> Schema:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, **more}


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TIME: Schema = {"type": "string", "format": "date-time"}
FREE: Schema = {"type": "object"}


def _maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_FILE = {
    "path": TEXT | {"description": "Relative to /home/sandbox."},
    "kind": {"enum": ["new", "changed", "deleted", "output"]},
    "size": COUNT | {"description": "Bytes."},
    "mode": COUNT,
    "blob": _maybe(TEXT) | {"description": "SHA-256 of the bytes, if they were kept."},
    "mime": TEXT,
    "skipped": _maybe(TEXT) | {"description": "Why the bytes were not kept."},
}

_STEP = {
    "id": TEXT,
    "sandbox": TEXT,
    "seq": COUNT | {"description": "Position in the sandbox's log, from 1."},
    "parent": _maybe(TEXT) | {"description": "Id of the step whose state this one starts from."},
    "kind": {"enum": ["cell", "upload", "mount", "rewind"]},
    "language": TEXT,
    "title": TEXT,
    "cell_id": _maybe(TEXT),
    "to": _maybe(TEXT) | {"description": "Of a rewind: id of the step it goes back to."},
    "created": TIME,
    "finished": _maybe(TIME),
    "status": {"enum": ["ok", "error", "interrupted", "limit", "lost", "pending"]},
    "reason": TEXT,
    "execution_count": _maybe(COUNT),
    "usage": FREE,
    "truncated": {"type": "boolean"},
    "files": _list(_ref("File")),
    "state": FREE,
}

SCHEMAS: dict[str, Schema] = {
    "Error": _object({"error": TEXT, "message": TEXT, "kept": TEXT, "remedy": TEXT}),
    "File": _object(_FILE),
    "Artifact": _object(
        {name: _FILE[name] for name in ("path", "size", "mode", "mime")}
        | {"blob": TEXT, "step": COUNT, "role": {"enum": ["export", "upload"]}, "created": TIME}
    ),
    "Sandbox": _object(
        {
            "id": TEXT,
            "notebook": TEXT,
            "name": TEXT,
            "created": TIME,
            "last_activity": TIME,
            "parent_step": _maybe(TEXT) | {"description": "Of a fork: the step it continues."},
            "steps": COUNT,
            "state": {"enum": ["open", "ended", "purged"]},
        }
    ),
    "Sandboxes": _object({"sandboxes": _list(_ref("Sandbox"))}),
    "Step": _object(_STEP),
    "StepDetail": _object(
        _STEP
        | {
            "source": TEXT,
            "outputs": _list(FREE),
            "exit_code": _maybe({"type": "integer"}),
            "limits": FREE,
            "engine": TEXT,
            "base": TEXT,
            "key": TEXT,
            "nonce": TEXT,
        }
    ),
    "Steps": _object({"steps": _list(_ref("Step")), "more": {"type": "boolean"}}),
    "Artifacts": _object({"artifacts": _list(_ref("Artifact"))}),
    "Listing": _object(
        {
            "path": TEXT,
            "type": {"const": "directory"},
            "complete": {
                "type": "boolean",
                "description": "False: the engine does not hold the state; only files known to the log.",
            },
            "entries": _list(
                _object(
                    {
                        "path": TEXT,
                        "kind": {"enum": ["file", "directory", "link", "other"]},
                        "size": COUNT,
                        "mtime": _maybe({"type": "number"}),
                    }
                )
            ),
        }
    ),
    "Uploaded": _object(
        {
            "step": _maybe(_ref("Step")) | {"description": "null: all of it was there already."},
            "paths": _list(TEXT),
            "skipped": _list(_object({"name": TEXT, "size": _maybe(COUNT), "why": TEXT})),
        }
    ),
    "Cached": _object({"cached": _list(TEXT)}),
    "Restored": _object({"step": COUNT, "key": TEXT}),
    "Status": _object(
        {
            "version": TEXT,
            "enabled": {"type": "boolean"},
            "owner": TEXT,
            "engine": _object({"name": TEXT, "available": {"type": "boolean"}}),
            "limits": FREE,
            "packages": _list(TEXT),
            "network": TEXT,
        }
    ),
}

_ERRORS = {
    "400": "A path, number or body cannot be used.",
    "403": "Not authenticated, not authorised, or a write without an XSRF token.",
    "404": "There is no such sandbox, step or file, or it is somebody else's.",
    "503": "The log or the engine cannot be used now.",
}


def _parameter(name: str, where: str, schema: Schema, text: str) -> Schema:
    return {
        "name": name,
        "in": where,
        "required": where == "path",
        "schema": schema,
        "description": text,
    }


def _path(name: str, schema: Schema, text: str) -> Schema:
    return _parameter(name, "path", schema, text)


def _query(name: str, schema: Schema, text: str) -> Schema:
    return _parameter(name, "query", schema, text)


ID = _path("id", TEXT, "The sandbox.")
SEQ = _path("step", TEXT, "The step: its sequence number or its id.")
FILE_PATH = _path("path", TEXT, "Relative to /home/sandbox; may hold slashes.")
INLINE = _query("inline", {"enum": ["1"]}, "Show instead of download, where the type is harmless.")


def _operation(
    summary: str,
    schema: str | None,
    *parameters: Schema,
    status: str = "200",
    action: str = "read",
    body: Schema | None = None,
    extra: dict[str, str] | None = None,
) -> Schema:
    content = (
        {"application/json": {"schema": _ref(schema)}}
        if schema
        else {"*/*": {"schema": {"type": "string", "format": "binary"}}}
    )
    responses: dict[str, Schema] = {status: {"description": summary, "content": content}}
    if schema is None:
        responses["206"] = {"description": "The range asked for.", "content": content}
        responses["304"] = {"description": "Unchanged (If-None-Match)."}
        responses["416"] = _error("The range lies outside the file.")
    for code, text in (_ERRORS | (extra or {})).items():
        responses[code] = _error(text)
    operation: Schema = {
        "summary": summary,
        "parameters": list(parameters),
        "responses": responses,
        "x-jupyter-action": action,
        "security": [{"token": []}, {"cookie": []}],
    }
    if body is not None:
        operation["requestBody"] = body
    return operation


def _error(text: str) -> Schema:
    return {"description": text, "content": {"application/json": {"schema": _ref("Error")}}}


def _json_body(schema: Schema, *, required: bool) -> Schema:
    return {"required": required, "content": {"application/json": {"schema": schema}}}


_UPLOAD_BODY: Schema = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": _object(
                {"file": _list({"type": "string", "format": "binary"}), "name": TEXT},
                optional=("name",),
                description="Any number of file parts; each may follow a `name` part whose text is the"
                " file's exact name as a JSON string.",
            )
        }
    },
}

_CREATED = "201"

PATHS: dict[str, dict[str, Schema]] = {
    "/sandboxes": {
        "get": _operation(
            "The user's sandboxes, the last active first.",
            "Sandboxes",
            _query("notebook", TEXT, "Only those of this notebook (JupyterLab's path or on disk)."),
        ),
        "post": _operation(
            "The sandbox that the notebook's kernel continues; a new one if there is none.",
            "Sandbox",
            status=_CREATED,
            action="execute",
            body=_json_body(_object({"notebook": TEXT}), required=True),
        ),
    },
    "/sandboxes/{id}": {"get": _operation("One sandbox.", "Sandbox", ID)},
    "/sandboxes/{id}/steps": {
        "get": _operation(
            "The log, in order.",
            "Steps",
            ID,
            _query("after", COUNT, "Only steps after this sequence number."),
            _query("limit", COUNT, "At most so many (500)."),
        )
    },
    "/sandboxes/{id}/inherited": {
        "get": _operation("The steps of other sandboxes that a fork continues.", "Steps", ID)
    },
    "/sandboxes/{id}/cached": {
        "get": _operation(
            "The steps (of the last 500) whose states the engine holds, so that they need no replay.",
            "Cached",
            ID,
        )
    },
    "/sandboxes/{id}/steps/{step}": {
        "get": _operation("One step with source and outputs.", "StepDetail", ID, SEQ)
    },
    "/sandboxes/{id}/steps/{step}/restore": {
        "post": _operation(
            "Replays what is missing, until the engine holds the state after the step.",
            "Restored",
            ID,
            SEQ,
            action="execute",
        )
    },
    "/sandboxes/{id}/artifacts": {
        "get": _operation("Files that steps exported or that were put in.", "Artifacts", ID)
    },
    "/sandboxes/{id}/artifacts/{step}/{path}": {
        method: _operation(
            "The bytes of one of a step's files.",
            None,
            ID,
            SEQ,
            FILE_PATH,
            INLINE,
            extra={"410": "The bytes are gone from the blob store."},
        )
        for method in ("get", "head")
    },
    "/sandboxes/{id}/archive": {
        "get": _operation(
            "Several files, or a directory of a state, as a ZIP archive.",
            None,
            ID,
            _query("file", _list(TEXT), "<step>/<path>, repeatable; none: the newest results."),
            _query(
                "directory",
                TEXT,
                "Instead: everything below it (empty: the home) but hidden files, links and special files.",
            ),
            _query("step", COUNT, "Of the directory; none: the newest."),
            extra={
                "409": "The engine does not hold the state of the directory.",
                "413": "The directory has more than 10,000 entries or 2 GiB.",
            },
        )
    },
    "/sandboxes/{id}/files/{path}": {
        method: _operation(
            "The bytes of a file, or the list of a directory, in the state after a step.",
            None,
            ID,
            FILE_PATH,
            _query("step", COUNT, "The step; none: the newest."),
            INLINE,
            extra={"409": "The engine does not hold the state and the file was not exported."},
        )
        for method in ("get", "head")
    },
    "/sandboxes/{id}/files": {
        method: _operation(
            "The list of the home directory in the state after a step.",
            "Listing",
            ID,
            _query("step", COUNT, "The step; none: the newest."),
        )
        for method in ("get", "head")
    },
    "/sandboxes/{id}/uploads": {
        "post": _operation(
            "Puts files in, as one logged step before the next cell.",
            "Uploaded",
            ID,
            status=_CREATED,
            action="execute",
            body=_UPLOAD_BODY,
            extra={
                "409": "A cell runs in the sandbox; send it again when the kernel is idle.",
                "413": "Every file is larger than the limit, or there are too many.",
                "415": "The body is no multipart/form-data.",
                "507": "No space is left.",
            },
        )
    },
    "/sandboxes/{id}/restart-as-new": {
        "post": _operation(
            "A new, empty sandbox for the same notebook; the old one stays in the log.",
            "Sandbox",
            ID,
            status=_CREATED,
            action="execute",
        )
    },
    "/sandboxes/{id}/reopen": {
        "post": _operation(
            "A sandbox that continues where this one ended, as the notebook's newest.",
            "Sandbox",
            ID,
            status=_CREATED,
            action="execute",
            body=_json_body(_object({"step": _maybe(COUNT)}, optional=("step",)), required=False),
        )
    },
    "/sandboxes/{id}/rewind": {
        "post": _operation(
            "The next cell continues from an earlier step (0: the base); nothing is deleted.",
            "Step",
            ID,
            status=_CREATED,
            action="execute",
            body=_json_body(_object({"step": COUNT}), required=True),
            extra={"409": "A cell runs in the sandbox."},
        )
    },
    "/status": {"get": _operation("The engine, the limits in force, the version.", "Status")},
    "/openapi.json": {
        "get": {
            "summary": "This description.",
            "parameters": [],
            "responses": {
                "200": {"description": "OpenAPI 3.1.", "content": {"application/json": {}}},
                "403": _error(_ERRORS["403"]),
            },
            "x-jupyter-action": "read",
        }
    },
}


def document(base_url: str) -> dict[str, Any]:
    """Return the description for a server."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dagger_kernel",
            "version": __version__,
            "description": "Sandboxes, their logs and their files. One sandbox belongs to one user; other"
            " users' are as good as absent. Reading needs the right to `read` the resource"
            " `dagger_kernel` (sandbox:read), everything else the right to `execute` it"
            " (sandbox:execute).",
        },
        "servers": [{"url": base_url.rstrip("/") + "/dagger-kernel/api"}],
        "paths": PATHS,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "Authorization"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "username-localhost"},
            },
        },
    }
