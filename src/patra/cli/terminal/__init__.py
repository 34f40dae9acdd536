"""What commands share: options, tables that never cut an id, empty results, groups with suggestions."""
