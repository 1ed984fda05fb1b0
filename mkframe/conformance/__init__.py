"""What an engine of anybody must satisfy, asked one by one in processes of their own. Nothing here measures anything."""
