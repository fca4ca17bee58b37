"""Tests of the commands that check the source."""
