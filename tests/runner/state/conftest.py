import pytest

from .harness import Engine, Notebook


@pytest.fixture(scope="session")
def engines():
    """Engines by way of running cells, started on first use."""
    started = {}

    def get(mode):
        if mode not in started:
            started[mode] = Engine(mode)
        return started[mode]

    yield get
    for engine in started.values():
        engine.close()


@pytest.fixture(params=["zygote", "bare"])
def notebook(request, engines, tmp_path):
    """A sandbox whose cells are forks: of a process with the usual libraries, or with none."""
    return Notebook(engines(request.param), tmp_path)


@pytest.fixture
def warm_notebook(engines, tmp_path):
    """A sandbox whose cells are forks of a process with the usual libraries."""
    return Notebook(engines("zygote"), tmp_path)


@pytest.fixture
def fresh_notebook(engines, tmp_path):
    """A sandbox whose cells are new interpreters."""
    return Notebook(engines("fresh"), tmp_path)
