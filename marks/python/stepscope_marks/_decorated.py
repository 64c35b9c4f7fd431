"""Functions whose every call is a scope."""

import functools
import inspect


def decorated(scope, name, function):
    """Returns the function with a scope round each call, or round each run of a coroutine function."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def marked(*arguments, **named):
            with scope(name):
                return await function(*arguments, **named)

    else:

        @functools.wraps(function)
        def marked(*arguments, **named):
            with scope(name):
                return function(*arguments, **named)

    return marked
