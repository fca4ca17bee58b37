"""Policy around graphs: profiling, guards, dispatch, cutting, faults, threads, memory."""
