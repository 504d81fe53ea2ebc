"""Where work is done beyond this process: the one door to processes, executors and Dask."""
