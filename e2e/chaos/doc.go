// Command chaos breaks a whole fleet on purpose and then checks that nothing was lost and nothing was done twice.
//
// It runs a real redis-server, real workers and a real front door, as built, against fakes of Slack, GitHub and the model in this process,
// with a scripted CLI (./cli) in the place of the agent. A plan made from a seed says what is asked of errand when, and what is broken
// when. When all is asked and everything works again, it waits until errand is done, stops it, and checks.
//
// It promises to judge errand from outside: by what the fakes were told, by the processes that were alive (each holds a connection to a
// witness, which the kernel closes with it), and by the keys left in Redis, but never by what errand says of itself; the chat alone is
// answered by errand's own API. It signals only processes that it started or that are descendants of those, by pidfd, after looking whether
// they still are. The same seed makes the same plan; what happens then depends on the machine as well.
//
// Everything dies with this process. Its directory stays when a check fails: the logs of all processes and chaos.log, which says what was
// done when.
package main
