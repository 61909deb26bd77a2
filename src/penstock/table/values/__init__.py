"""What values of tables are and how they become each other, with the rules of Java and Flink; no plan and no rows."""
