"""The OpenAI Responses API."""
