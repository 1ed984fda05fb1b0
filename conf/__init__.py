"""What a user edits: the configuration files. An installed package calls this folder mkframe_conf."""
