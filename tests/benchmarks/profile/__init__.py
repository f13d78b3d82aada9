"""Where the processor time of a row goes: by part of the program, and by part of the machine.

A row is measured a few times over, each time with somebody else who looks on at the daemon, from
its window's beginning to its end: nobody but counters; ``py-spy``, which tells whose Python holds
the interpreter's lock; ``perf``, which tells what the processor runs, the kernel included;
``strace``, which counts system calls. The CPU clocks of the process and of its threads are read
each time: they say what there is to be explained, and how much of it the samples do.
"""
