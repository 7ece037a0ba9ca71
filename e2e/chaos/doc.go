// Command chaos breaks a whole fleet on purpose and then checks that nothing was lost and nothing was done twice.
//
// It runs a real redis-server, real workers and a real front door, as built, against fakes of Slack, GitHub and the
// model in this process, with a scripted CLI (./cli) instead of the agent. With -sentinel, Redis is a master, a replica
// and three Sentinels, and its faults are fail-overs. With -once, workers take one task each, in containers that start
// again.
//
// A plan generated from a seed says when requests are made and faults occur. After the plan, when all faults have
// ended, it waits until errand is done, stops it, and checks the results.
//
// It judges errand from outside: by the requests to the fakes, by the processes that were alive (each holds a
// connection to a witness, which the kernel closes with the process), and by the keys left in Redis. It does not use
// errand's own records, except for the chat, whose endings only errand's API has. It signals only processes that it or
// its children started, by pidfd, after checking their identity. The same seed gives the same plan; the course of a run
// also depends on the machine.
//
// All processes end with this one. If a check fails, it keeps its directory with the logs of all processes and
// chaos.log, the list of actions.
package main
