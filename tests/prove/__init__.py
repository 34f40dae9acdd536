"""The long proofs, run by `./dev prove [NAME]`: one module a proof, each with a `main()`."""
