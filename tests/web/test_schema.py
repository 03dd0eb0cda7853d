"""The service against its own OpenAPI document, with requests that are made of it."""

import pytest
from hypothesis import HealthCheck, given, settings

pytest.importorskip("schemathesis", reason="requests are made by schemathesis")
pytest.importorskip("fastapi", reason="the service needs the extra web")

import schemathesis
from schemathesis import GenerationMode

from treewright.web.app import make_app
from treewright.web.work import ServiceLimits

ACCEPTED = ["200", "404", "413", "422"]
"""A document cannot say which text is a tree, which heads make one, or what models have which names."""
REJECTED = ["400", "404", "405", "413", "415", "422"]
CHECKS = {
    "positive_data_acceptance": {"expected-statuses": ACCEPTED},
    "negative_data_rejection": {"expected-statuses": REJECTED},
}


@pytest.fixture(scope="session")
def document(models):
    """Return the document of a service of either kind of model, with the service behind it."""
    served = {name: models[name] for name in ("parser", "constituents")}
    app = make_app(served, limits=ServiceLimits(max_words=20, max_characters=500))
    return schemathesis.openapi.from_asgi(
        "/openapi.json", app, config=schemathesis.Config.from_dict({"checks": CHECKS})
    )


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.name
)
@pytest.mark.parametrize("path", ["/parse", "/kbest", "/explain"])
def test_answers_to_questions_are_those_of_the_document(document, path, mode):
    @settings(max_examples=30, suppress_health_check=list(HealthCheck))
    @given(case=document[path]["POST"].as_strategy(generation_mode=mode))
    def check(case):
        case.call_and_validate()

    check()


@pytest.mark.parametrize("path", ["/health", "/models", "/meanings"])
def test_answers_without_questions_are_those_of_the_document(document, path):
    document[path]["GET"].Case().call_and_validate()
