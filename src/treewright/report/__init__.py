"""What people look at: drawings, tables, progress and the demonstration."""
