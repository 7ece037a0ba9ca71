package redisserver

import "syscall"

// attributes: the server gets SIGTERM when we die, whatever killed us, and is no member of our process group, because Ctrl-C in a
// terminal goes to the whole group and would end the database under a worker that is still draining.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
}
