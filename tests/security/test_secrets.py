"""Secrets reach a live cell's environment and nothing else: not the log, not a layer, not what the cell says."""

from __future__ import annotations

import base64
import json
import os
import shutil
from pathlib import Path

import pytest

from dagger_kernel.errors import SecretError

from .conftest import printed, watching_command_lines

VALUE = "tok-5up3r/s3cr3t+w0rd"
MASK = "***"


@pytest.fixture
def given(sandboxes):
    sandbox = sandboxes()
    sandbox.secret("API_KEY", VALUE)
    return sandbox


def holders(place, value=VALUE):
    """Return the files below a directory that hold a value, also as literals and JSON write it."""
    found = []
    forms = [value.encode(), repr(value)[1:-1].encode(), json.dumps(value)[1:-1].encode()]
    for folder, _, names in os.walk(place):
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                data = path.read_bytes()
                found += [str(path.relative_to(place)) for form in forms if form in data]
    return found


def test_every_later_cell_has_it_until_it_is_forgotten(given):
    code = "import os; print(len(os.environ.get('API_KEY', '')))"
    for _ in range(3):  # the second cell restores what the first one saved
        assert printed(given.run(code)) == f"{len(VALUE)}\n"
    assert printed(given.run("echo ${#API_KEY}", language="bash")) == f"{len(VALUE)}\n"
    assert printed(given.run("echo ${#API_KEY}", language="bash")) == f"{len(VALUE)}\n"
    assert given.forget_secret("API_KEY")
    assert printed(given.run(code)) == "0\n"
    assert printed(given.run("echo ${#API_KEY}", language="bash")) == "0\n"
    assert not given.forget_secret("API_KEY")


SAYING = {
    "print": "print('key', key, 'end')",
    "a byte at a time": "import sys, time\nfor c in key:\n    sys.stdout.write(c); sys.stdout.flush(); time.sleep(0.01)",
    "a child's output": "import subprocess; subprocess.run(['sh', '-c', 'echo $API_KEY; echo $API_KEY >&2'])",
    "a value": "key",
    "inside of a value": "{'Authorization': 'Bearer ' + key}",
    "a display": "from IPython.display import HTML, display; display(HTML('<b>' + key + '</b>'))",
    "JSON": "from IPython.display import JSON, display; display(JSON({key: [key]}))",
    "an error": "raise ValueError('bad key ' + key)",
    "base64, as HTTP has it": "import base64; print(base64.b64encode(b'user:' + key.encode()).decode())",
    "base64 in lines": "import base64; print(base64.encodebytes(b'x' * 50 + key.encode()).decode())",
    "capital hexadecimal": "print(key.encode().hex().upper())",
    "hexadecimal by bytes": "print(key.encode().hex(':'))",
    "around a display": "import sys; from IPython.display import display; sys.stdout.write(key[:9]); sys.stdout.flush()\n"
    "display(1); sys.stdout.write(key[9:])",
    "a URL": "from urllib.parse import quote; print('https://x/?k=' + quote(key, safe=''))",
    "too much output": "print((key + '\\n') * 30000)",
    "an upper layer's warning": "import warnings; warnings.warn(key)",
}


@pytest.mark.parametrize("how", SAYING)
def test_what_a_cell_says_is_masked(given, how):
    heard = []
    take = {"on_stdout": heard.append, "on_stderr": heard.append, "on_result": heard.append}
    done = given.run(f"import os; key = os.environ['API_KEY']\n{SAYING[how]}", **take)
    told = repr((done, heard))
    assert VALUE not in told
    assert base64.b64encode(b"user:" + VALUE.encode()).decode() not in told
    assert "tok-5up3r%2Fs3cr3t" not in told
    assert MASK in told
    for file in done.files:
        assert VALUE.encode() not in (file.data or b"")


def test_nothing_on_disk_holds_it(given, sandboxes):
    given.run(
        "import os, functools\nkey = os.environ['API_KEY']\nparts = {'a': [key]}\n"
        "os.environ['COPY'] = key\nclass C: token = key\nf = lambda x=key: x\ng = functools.partial(print, key)\n"
        "kept = len(key)\nprint(key)\nkey"
    )
    given.run('COPY=$API_KEY; export MORE="x $API_KEY"; words=($API_KEY); plain=1', language="bash")
    done = given.run("print(kept, 'COPY' in os.environ, os.environ.get('API_KEY') is not None)")
    assert printed(done) == f"{len(VALUE)} False True\n"
    assert printed(given.run("echo $plain-$COPY-$MORE", language="bash")) == "1--\n"
    given.close()
    assert holders(sandboxes.data_dir) == []


KEEPING = [
    "raise ValueError(f'bad key {key}')",
    "raise KeyError(key)",
    "raise ExceptionGroup('some', [ValueError(key)])",
    "%xmode Verbose\ndef use(token):\n    1 / 0\nuse(key)",
    "class C:\n    def __repr__(self):\n        raise ValueError(key)\nC()",
    "import sys; sys.exit(key)",
    "get_ipython().run_line_magic(key, '')",
    "key",
    "_ = __ = key; _i1 = key; In.append(key); _dh.append(key)",
    "get_ipython().run_cell(f'inner = {key!r}', store_history=True)",
    "os.environ['COPY'] = key; os.environ['x' + key] = '1'; import sys; sys.path.append(key)",
    "get_ipython().alias_manager.define_alias('shout', f'echo {key}')",
    "get_ipython().input_transformers_post.append(lambda lines, key=key: lines)",
    "import logging, warnings; logging.getLogger(key).setLevel(10); warnings.filterwarnings('ignore', key)",
    "import json; json.token = key; import builtins; builtins.token = key",
    "stored = [key]\n%store stored",
    "get_ipython().alias_manager.define_alias('stored', f'echo {key}')\n%store stored",
]


@pytest.mark.parametrize("end", ["", "'\"\\"], ids=["plain", "quotes"])
def test_nothing_that_is_kept_between_cells_holds_it(sandboxes, end):
    value = VALUE + end
    sandbox = sandboxes()
    sandbox.secret("API_KEY", value)
    for cell in KEEPING:
        sandbox.run(f"import os; key = os.environ['API_KEY']\n{cell}")
    sandbox.close()
    assert holders(sandboxes.data_dir, value) == []


IN_BASH = """COPY=$API_KEY; export MORE="x $API_KEY"; words=(1 "$API_KEY"); declare -A map=([a]="$API_KEY"); declare -n ref=COPY
lines="1
$API_KEY"
alias shout="echo \\"$API_KEY\\"" fine="echo 'two
lines'"
say() { echo 'fine'; if true; then echo function; fi; }
eval "$(declare -f say | sed '1s/say/tell/; s/echo function/: ${API_KEY@Q}/')"
eval "tell() { if true; then
: ${API_KEY@Q}; fi
}"
PS4=$API_KEY
mkdir -p "q/$API_KEY"; cd "q/$API_KEY"
"""


@pytest.mark.parametrize("end", ["", "'\"\\$x`"], ids=["plain", "quotes"])
def test_bash_keeps_nothing_that_holds_it(sandboxes, end):
    value = VALUE.replace("/", "-") + end
    sandbox = sandboxes()
    sandbox.secret("API_KEY", value)
    done = sandbox.run(IN_BASH, language="bash")
    assert done.error is None
    sandbox.close()
    bare = value.translate(str.maketrans("", "", "\\'\""))
    for state in sandboxes.data_dir.glob("layers/**/bash/state.sh"):
        assert bare not in state.read_text().translate(str.maketrans("", "", "\\'\""))
    again = sandboxes(sandbox.id)  # without the secret: nothing is masked any more
    done = again.run(
        'fine; say\necho "<$COPY$MORE${words[*]}${map[*]}$lines$PS4>"; declare -p; alias; declare -f',
        language="bash",
    )
    assert "two\nlines\nfine\nfunction\n<" in printed(done)
    assert VALUE[:8] not in repr(done)


def test_an_earlier_sessions_error_is_shown_masked(given, sandboxes):
    given.run("import os\nraise ValueError('bad ' + os.environ['API_KEY'] + '!')")
    given.close()
    shown = sandboxes(given.id).run("%tb")  # without the secret: nothing is masked any more
    assert f"bad {MASK}!" in repr(shown.error)
    assert VALUE not in repr(shown)


def test_what_is_stored_with_it_is_dropped_and_says_so(given):
    done = given.run("import os; key = os.environ['API_KEY']; fine = 1\n%store key\n%store fine")
    assert "what %store wrote to autorestore/key: it holds the secret API_KEY" in "".join(
        done.logs.stderr
    )
    done = given.run("%store -r\nprint(fine, 'key' in globals())")
    assert printed(done) == "1 True\n"  # a variable that was lost


def test_a_variable_that_holds_it_is_not_kept_and_says_so(given):
    done = given.run("import os; key = os.environ['API_KEY']; other = 1")
    (lost,) = [item for item in done.state["lost"] if item["name"] == "key"]
    assert lost["reason"] == "it holds the secret API_KEY, which is never saved"
    assert "not kept for later cells: key" in "".join(done.logs.stderr)
    assert printed(given.run("print(other)")) == "1\n"
    assert "StateLostError" in repr(given.run("print(key + '')").error)


def test_the_log_has_the_name(given, sandboxes):
    given.run("pass")
    step = given._inner._session._tip.step
    assert step.payload["secrets"] == ["API_KEY"]


def test_no_command_line_on_this_machine_shows_it(given):
    with watching_command_lines(VALUE) as seen:
        given.run("import subprocess; subprocess.run(['sleep', '0.4'])")
        given.run("sleep 0.4", language="bash")
    assert seen
    assert not any(seen)


def test_other_sandboxes_do_not_have_it(given, sandboxes):
    given.run("pass")
    other = sandboxes()
    assert printed(other.run("import os; print('API_KEY' in os.environ)")) == "False\n"
    again = sandboxes(given.id)  # and a new session of the same sandbox does not either
    assert printed(again.run("import os; print('API_KEY' in os.environ)")) == "False\n"


USE = "import os\ngot = 'with' if 'API_KEY' in os.environ else 'without'\nprint(got, os.environ.get('API_KEY'))"


def test_a_replay_without_it_says_so(given, sandboxes):
    given.run(USE)
    given.close()
    shutil.rmtree(sandboxes.data_dir / "layers")
    again = sandboxes(given.id)
    done = again.run("print(got)")
    assert printed(done) == "without\n"
    assert done.drift[0] == (
        "Step 1 (cell [1]) had secrets, API_KEY: it was replayed without API_KEY, which the log does not hold."
    )
    assert len(done.drift) == 2  # and that it came out differently


def test_a_replay_in_the_session_that_has_it_uses_it_again(given, sandboxes):
    given.run(USE)
    given.run("pass")
    rooms = given._inner._session._rooms

    async def evict():
        await rooms._committing  # the last layer is there
        await (
            rooms.waiting()
        )  # and the next room: one that is being opened holds layers for a moment longer
        await rooms.drop_standby()
        return await rooms._engine.evict()

    assert given._wait(evict()) == 2
    done = given.run("print(got)")
    assert printed(done) == "with\n"
    assert done.drift == [
        "Step 1 (cell [1]) had secrets, API_KEY: its replay was given them again.",
        "Step 2 (cell [2]) had secrets, API_KEY: its replay was given them again.",
    ]


def test_the_environment_of_one_run_is_masked_too(sandboxes):
    sandbox = sandboxes()
    done = sandbox.run(
        "import os; print(os.environ['ONCE'], os.environ['MODE'])",
        env={"ONCE": VALUE, "MODE": "fast"},
    )
    assert printed(done) == f"{MASK} fast\n"
    assert printed(sandbox.run("print('ONCE' in os.environ)")) == "False\n"


def test_the_administrators_secret(sandboxes, tmp_path, monkeypatch):
    (tmp_path / "key").write_text(VALUE + "\n")
    admin = tmp_path / "admin.toml"
    admin.write_text(f"[secrets]\nAPI_KEY = '{tmp_path}/key'\nGONE = '{tmp_path}/gone'\n")
    monkeypatch.setattr("dagger_kernel.settings.ADMIN_FILE", admin)
    sandbox = sandboxes()
    code = "import os; print(len(os.environ.get('API_KEY', '')))"
    assert printed(sandbox.run(code)) == "0\n"  # only who asks for it gets it
    sandbox.secret("API_KEY")
    assert printed(sandbox.run(code)) == f"{len(VALUE)}\n"
    with pytest.raises(SecretError, match="provides none"):
        sandbox.secret("OTHER")
    with pytest.raises(Exception, match=r"secrets\.GONE"):
        sandbox.secret("GONE")


@pytest.mark.parametrize(
    "name, value",
    [
        ("a b", VALUE),
        ("", VALUE),
        ("A=B", VALUE),
        ("KEY", "short"),
        ("KEY", "x" * 9 + "\0"),
        ("KEY", "x" * 70000),
    ],
)
def test_unusable_secrets_are_refused_without_telling_them(sandboxes, name, value):
    with pytest.raises(SecretError) as caught:
        sandboxes().secret(name, value)
    assert value not in str(caught.value)
