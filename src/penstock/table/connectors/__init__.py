"""The connectors of tables, over those of streams; a table's options say which one and how."""
