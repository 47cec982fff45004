# SPDX-License-Identifier: Apache-2.0
"""get_context(): a context of multiprocessing with the drop-ins of shmview."""

import multiprocessing

__all__ = ["get_context"]


def _ours(module, name):
    def make(self, *args, **kwargs):
        from importlib import import_module
        return getattr(import_module(f"{__package__}.{module}"), name)(*args, **kwargs)
    make.__name__ = name
    make.__doc__ = f"Returns a new shmview.{name}."
    return make


_NAMES = {
    "synchronize": ("Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier"),
    "queues": ("Queue", "JoinableQueue", "SimpleQueue"),
    "sharedctypes": ("RawValue", "RawArray", "Value", "Array"),
}


def _get_context(self, method=None):
    """Returns this context, or that of another start method."""
    return self if method is None else get_context(method)


def _reduce(self):
    return get_context, (self.get_start_method(),)


def _pool(self, processes=None, initializer=None, initargs=(), maxtasksperchild=None):
    """Returns a Pool of multiprocessing, which uses pipes and locks of its own."""
    standard = multiprocessing.get_context(self.get_start_method())
    return standard.Pool(processes, initializer, initargs, maxtasksperchild)


_contexts = {}  # start method: context


def get_context(method=None):
    """Returns a context like multiprocessing.get_context(method), whose locks, Condition, Semaphore,
    Event, Barrier, queues, Value and Array are those of shmview. Everything else, among it Process,
    Pool and Manager, is multiprocessing's.

    method: "fork", "spawn", "forkserver", or None for multiprocessing's default. Raises ValueError
    for another method."""
    standard = multiprocessing.get_context(method)
    method = standard.get_start_method()
    if method not in _contexts:
        made = {name: _ours(module, name) for module, names in _NAMES.items() for name in names}
        made.update(get_context=_get_context, Pool=_pool, __reduce__=_reduce, __module__=__name__,
                    __doc__=get_context.__doc__)
        _contexts[method] = type(f"Shmview{type(standard).__name__}", (type(standard),), made)()
    return _contexts[method]
