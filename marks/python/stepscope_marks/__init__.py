"""Marks for Stepscope: steps, scopes and counters from the program.

    import stepscope_marks as marks

    while running:
        marks.step(sim_time_s)           # ends a step, starts the next
        with marks.scope("physics"):     # until the end of the block
            ...
        marks.counter("contacts", n)     # an integer, with its unit in the name

        marks.flow_begin("scan", id)     # a message is published; flow_step: it passes; flow_end: it has arrived

    @marks.scope("render")               # every call of the function
    def render(): ...

Marks are written to shared memory while `stepscope record` records the program; otherwise, and with STEPSCOPE_MARKS=0 in
the environment, they do nothing. Any thread may mark, and so may children of fork. docs/marks-format.md describes the
shared memory. A compiled module makes the marks where it is installed; without it, Python code does (`is_compiled`).
`is_recording()` says whether a recorder reads the marks.
"""

try:
    from ._compiled import counter, flow_begin, flow_end, flow_step, frame_mark, is_recording, scope, step

    is_compiled = True
except ImportError:
    from ._pure import counter, flow_begin, flow_end, flow_step, frame_mark, is_recording, scope, step

    is_compiled = False

__all__ = ["counter", "flow_begin", "flow_end", "flow_step", "frame_mark", "is_compiled", "is_recording", "scope", "step"]
