"""The database's shape over time. Migrations add and change; they destroy nothing."""
