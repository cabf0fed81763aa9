"""Answers and their forms: solving and making room, results as documents, summaries, reasons, audits, reports."""
