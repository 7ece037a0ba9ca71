// Command image tests errand's image without an engine. It starts the image's front door and worker as separate
// containers, with a real redis-server and the fake model, waits until both are healthy, submits a task with the
// image's command line, which the image's CLI runs, checks where it ran, and stops them. scripts/image builds the image
// and calls this command.
//
// A container is made with bubblewrap: the image's files, read-only; a process namespace whose first process is the
// image's entrypoint; the image's user without capabilities. Commands, environment, volumes and health checks are those
// of docker-compose.yml. An engine would also add limits of memory and processes, and a seccomp filter. The command
// must run as root with only a loopback network: the image needs only Redis and the model. Its containers end with it.
package main
