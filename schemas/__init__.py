"""The public JSON Schemas of the report formats. An installed package calls this folder mkframe_schemas."""
