"""JSON schemas of every message a kernel sends (protocol 5.5), and one validator.

Stricter than jupyter_kernel_test's: every kind is here, error and aborted replies have their own
schema, and the parts around the content are checked too.
"""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator

TEXT = {"type": "string"}
INTEGER = {"type": "integer"}
OBJECT = {"type": "object"}
BOOLEAN = {"type": "boolean"}
LINES = {"type": "array", "items": TEXT}
BUNDLE = {
    "type": "object",
    "propertyNames": {"pattern": r"^[\w\-\+\.]+/[\w\-\+\.]+$"},
}


def record(required, optional=None):
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": sorted(required),
    }


def one_of(*texts):
    return {"enum": list(texts)}


HEADER = record(
    {
        "msg_id": TEXT,
        "username": TEXT,
        "session": TEXT,
        "date": {},
        "msg_type": TEXT,
        "version": TEXT,
    }
)
EXPRESSION = {
    "oneOf": [
        record({"status": one_of("ok"), "data": BUNDLE, "metadata": OBJECT}),
        record({"status": one_of("error"), "ename": TEXT, "evalue": TEXT, "traceback": LINES}),
    ]
}
PAYLOAD = {
    "oneOf": [
        record({"source": one_of("page"), "data": BUNDLE}),
        record({"source": one_of("set_next_input"), "text": TEXT, "replace": BOOLEAN}),
        record({"source": one_of("edit_magic", "ask_exit")}),
    ]
}
HISTORY_ITEM = {
    "type": "array",
    "prefixItems": [
        INTEGER,
        INTEGER,
        {"oneOf": [TEXT, {"type": "array", "minItems": 2, "maxItems": 2}]},
    ],
    "minItems": 3,
    "maxItems": 3,
}
LANGUAGE = record(
    {"name": TEXT, "version": TEXT, "mimetype": TEXT, "file_extension": {"pattern": r"^\."}},
    {"pygments_lexer": TEXT, "codemirror_mode": {}, "nbconvert_exporter": TEXT},
)

ERROR_REPLY = record(
    {"status": one_of("error"), "ename": {"type": "string", "minLength": 1}, "evalue": TEXT,
     "traceback": LINES}
)  # fmt: skip

OK_REPLIES = {
    "execute_reply": record(
        {
            "status": one_of("ok"),
            "execution_count": {"type": "integer", "minimum": 0},
            "user_expressions": {"type": "object", "additionalProperties": EXPRESSION},
            "payload": {"type": "array", "items": PAYLOAD},
        }
    ),
    "inspect_reply": record(
        {"status": one_of("ok"), "found": BOOLEAN, "data": BUNDLE, "metadata": OBJECT}
    ),
    "complete_reply": record(
        {
            "status": one_of("ok"),
            "matches": LINES,
            "cursor_start": INTEGER,
            "cursor_end": INTEGER,
            "metadata": OBJECT,
        }
    ),
    "history_reply": record(
        {"status": one_of("ok"), "history": {"type": "array", "items": HISTORY_ITEM}}
    ),
    "kernel_info_reply": record(
        {
            "status": one_of("ok"),
            "protocol_version": {"pattern": r"^\d+\.\d+$"},
            "implementation": TEXT,
            "implementation_version": TEXT,
            "language_info": LANGUAGE,
            "banner": TEXT,
            "help_links": {"type": "array", "items": record({"text": TEXT, "url": TEXT})},
            "supported_features": LINES,
        }
    ),
    "connect_reply": record(
        {f"{name}_port": INTEGER for name in ("shell", "iopub", "stdin", "hb", "control")}
    ),
    "comm_info_reply": record(
        {
            "status": one_of("ok"),
            "comms": {
                "type": "object",
                "additionalProperties": record({"target_name": TEXT}),
            },
        }
    ),
    "shutdown_reply": record({"status": one_of("ok"), "restart": BOOLEAN}),
    "interrupt_reply": record({"status": one_of("ok")}),
    "usage_reply": record({"status": one_of("ok"), "hostname": TEXT, "pid": INTEGER}),
    "debug_reply": record(
        {"type": one_of("response"), "success": BOOLEAN, "command": TEXT, "request_seq": INTEGER}
    ),
    "is_complete_reply": {
        "oneOf": [
            record({"status": one_of("complete", "invalid", "unknown")}),
            record({"status": one_of("incomplete"), "indent": TEXT}),
        ]
    },
    "create_subshell_reply": ERROR_REPLY,
    "delete_subshell_reply": ERROR_REPLY,
    "list_subshell_reply": ERROR_REPLY,
}

DISPLAY = {"data": BUNDLE, "metadata": OBJECT}
IOPUB = {
    "status": record({"execution_state": one_of("busy", "idle", "starting")}),
    "execute_input": record({"code": TEXT, "execution_count": {"type": "integer", "minimum": 1}}),
    "stream": record(
        {"name": one_of("stdout", "stderr"), "text": {"type": "string", "minLength": 1}}
    ),
    "display_data": record(DISPLAY, {"transient": OBJECT}),
    "update_display_data": record(
        {**DISPLAY, "transient": record({"display_id": TEXT})},
    ),
    "execute_result": record(
        {**DISPLAY, "execution_count": {"type": "integer", "minimum": 1}},
    ),
    "clear_output": record({"wait": BOOLEAN}),
    "error": record({"ename": TEXT, "evalue": TEXT, "traceback": LINES}),
    "comm_open": record({"comm_id": TEXT, "target_name": TEXT, "data": OBJECT}),
    "comm_msg": record({"comm_id": TEXT, "data": OBJECT}),
    "comm_close": record({"comm_id": TEXT, "data": OBJECT}),
    "iopub_welcome": record({"subscription": TEXT}),
    "shutdown_reply": OK_REPLIES["shutdown_reply"],
}
STDIN = {"input_request": record({"prompt": TEXT, "password": BOOLEAN})}


def validate(message, channel):
    """Raise jsonschema.ValidationError if a message from the kernel is not as the protocol says."""
    kind, content = message["header"]["msg_type"], message["content"]
    check(message["header"], HEADER, kind)
    assert message["header"]["msg_type"] == message["msg_type"]
    for part in ("parent_header", "metadata", "content"):
        assert isinstance(message[part], dict), (kind, part)
    json.dumps([content, message["metadata"]], allow_nan=False, ensure_ascii=False).encode("utf-8")
    if channel == "iopub":
        check(content, IOPUB[kind], kind)
        if message["parent_header"]:
            check(message["parent_header"], HEADER, kind)
    elif channel == "stdin":
        check(content, STDIN[kind], kind)
    else:
        check(message["parent_header"], HEADER, kind)
        check(content, _reply_schema(kind, content), kind)


def _reply_schema(kind, content):
    status = content.get("status")
    if status == "error":
        return ERROR_REPLY
    if status == "aborted":
        return record({"status": one_of("aborted"), "execution_count": INTEGER})
    return OK_REPLIES[kind]


def check(value, schema, kind):
    for error in Draft202012Validator(schema).iter_errors(value):
        raise AssertionError(f"{kind}: {error.message} at {list(error.path)} of {value}")
