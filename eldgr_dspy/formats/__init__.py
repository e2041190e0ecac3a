"""How pools and journals are written: rows and columns, Parquet, lines of a journal, the formats of others."""
