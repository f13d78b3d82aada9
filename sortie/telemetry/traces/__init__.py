"""Spans of runs for OpenTelemetry: made of facts, and sent by OTLP over HTTP.

``TraceSink`` makes them, each once it is over, with times and ids of its own: a span that is under
way is a few values here, and nothing of the SDK. ``SpanPipeline`` hands them to the SDK, whose
thread sends them; ``pipeline`` and ``exporter`` import it, and are loaded only where spans are
wanted.
"""
