//go:build !linux

package redisserver

import "syscall"

// attributes: only Linux has a parent-death signal. Elsewhere the server stays behind when this process is killed with
// -9.
func attributes() *syscall.SysProcAttr { return nil }
