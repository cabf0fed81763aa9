"""Things that know nothing of placing: errors, codes, words, amounts, time, executors, tables."""
