"""A language model trained with LuWu: workers, optimizer node and exact twins, for demo, co-simulation and benches."""
