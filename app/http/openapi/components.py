"""Every schema of the OpenAPI document by its name there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.http.openapi import budget_schema as budget
from app.http.openapi import protocol_schemas as protocols
from app.http.openapi import schemas

if TYPE_CHECKING:
    from app.http.openapi.schemas import JsonSchema

COMPONENTS: Final[dict[str, JsonSchema]] = {
    "Query": schemas.QUERY,
    "QueryLine": schemas.QUERY_LINE,
    "Answer": schemas.ANSWER,
    "Problem": schemas.PROBLEM,
    "Budget": budget.BUDGET,
    "Outlook": budget.OUTLOOK,
    "Parameters": budget.PARAMETERS,
    "LedgerPage": schemas.LEDGER_PAGE,
    "LedgerHead": schemas.LEDGER_HEAD,
    "Classifier": schemas.CLASSIFIER,
    "ClassifierModel": schemas.CLASSIFIER_MODEL,
    "StatisticsQuestion": schemas.STATISTICS_QUESTION,
    "StatisticsAnswer": schemas.STATISTICS_ANSWER,
    "StatisticsTable": schemas.STATISTICS_TABLE,
    "Metrics": schemas.METRICS,
    "Schema": schemas.SCHEMA,
    "Status": schemas.STATUS,
    "V2Error": protocols.V2_ERROR,
    "V2Server": protocols.V2_SERVER,
    "V2Live": protocols.V2_LIVE,
    "V2Ready": protocols.V2_READY,
    "V2Model": protocols.V2_MODEL,
    "V2ModelReady": protocols.V2_MODEL_READY,
    "V2Inference": protocols.V2_INFERENCE,
    "V2InferenceWithBinary": protocols.V2_WITH_BINARY,
    "V2Outputs": protocols.V2_OUTPUTS,
    "Invocation": protocols.INVOCATION,
    "InvocationCsv": protocols.INVOCATION_CSV,
    "Predictions": protocols.PREDICTIONS,
}
