// Command image tries errand's image, without an engine: it starts the image's front door and its worker as containers of their own, beside
// a real redis-server and the model's fake, sees both become healthy, lets the image's own command line ask for something that the image's
// own CLI then does, looks where that was, and stops them. scripts/image builds the image and calls it.
//
// A container is bubblewrap: the image's files, read-only; a process namespace whose first process is the image's entrypoint; its user
// without any capability. Commands, environment, volumes and health checks are those of docker-compose.yml. What an engine would add is not
// there: limits of memory and processes, and a seccomp filter. It must run as root, and where there is no network but loopback: the image
// needs nothing else of the world than Redis and the model. Its containers die with it.
package main
