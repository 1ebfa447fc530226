"""Accuracy and speed, measured side by side; ``python -m benchmarks`` runs everything behind a published figure."""
