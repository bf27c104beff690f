"""The code that runs beside a submission. It knows no answer, no tolerance and no verdict.

Standard library and torch only; nothing of the rest of grader is imported here (a test holds this).
"""
