"""Windows cut into slices: pure, without a store (ch. 8).

| module | for |
|---|---|
| `windows` | slices that cover a window exactly (ch. 8.2, 11.5); estimates by what windows held before (I3) |
| `slice_spec` | `slice_spec`, its signature, the localised expression (ch. 8.2.2 to 8.2.4) |
| `slice_groups` | a plan as groups of slices, by what is known of sizes (ch. 8.3, 8.4) |
"""
