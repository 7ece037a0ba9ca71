package redisserver

import "syscall"

// attributes makes the server get SIGTERM when this process dies, for any reason. The server gets its own process
// group, because Ctrl-C in a terminal goes to the whole group and would stop the database under a worker that is still
// draining.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
}
