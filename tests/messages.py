"""Hearing what is reported."""

from contextlib import contextmanager

from treewright.progress import Message, listening


@contextmanager
def records_to(callback):
    """Call a function with the record of each line that has one."""

    def hear(event):
        if isinstance(event, Message) and event.record is not None:
            callback(event.record)

    with listening(hear):
        yield
