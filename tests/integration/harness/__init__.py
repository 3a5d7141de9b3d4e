"""Harness of the integration tests: real processes on loopback, and the tools that hurt them.

Every process is started and ended by its test, by process id, and dies with the test run
(PR_SET_PDEATHSIG). Ports come from bind 0. Nothing here sleeps and then believes: waits are on
conditions, with deadlines. Times are seconds of the wall clock (time.time()), so that they compare
with the time stamps of logs, events and redis' MONITOR.
"""
