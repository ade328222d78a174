import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from podferry.webhook.admission.metrics import WebhookMetrics, serve_metrics


async def test_what_is_counted_is_served() -> None:
    metrics = WebhookMetrics()
    metrics.count_review("mutate", "injected", 0.003)
    metrics.count_review("mutate", "injected", 0.3)
    metrics.warnings.inc(2)
    metrics.rejected.labels("408").inc()
    metrics.policy_read.set(17)
    metrics.watch("ready", "Whether it is", lambda: True)
    runner = await serve_metrics(metrics, "127.0.0.1", 0)
    async with (
        aiohttp.ClientSession() as client,
        client.get(f"http://127.0.0.1:{runner.addresses[0][1]}/metrics") as response,
    ):
        assert response.content_type == "text/plain"
        text = await response.text()
    await runner.cleanup()
    found = {
        (sample.name.removeprefix("podferry_webhook_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["reviews_total", "injected", "mutate"] == 2
    assert found["warnings_total",] == 2
    assert found["rejected_requests_total", "408"] == 1
    assert found["policy_read_timestamp_seconds",] == 17
    assert found["ready",] == 1
    assert found["review_seconds_bucket", "0.005"] == 1
    assert found["review_seconds_count",] == 2
