"""What a function does, counted: no clock, which a machine under load slows down."""

import sys


def count_calls(function, *arguments, **settings):
    """Calls of functions, those of C too."""
    calls = []
    sys.setprofile(lambda frame, event, argument: calls.append(event) if event.endswith("call") else None)
    try:
        function(*arguments, **settings)
    finally:
        sys.setprofile(None)
    return len(calls)
