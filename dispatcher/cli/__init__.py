"""The command line: `dispatcher call|run|tools|doctor|demo`. stdout carries results only."""
