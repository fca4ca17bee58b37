"""The program's objects: classes, attributes, containers, what outlives a call."""
