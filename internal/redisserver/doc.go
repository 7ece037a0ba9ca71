// Package redisserver runs a real redis-server as a child process: the database of `worker -standalone` and of tests.
//
// It promises that the server listens on loopback only, requires a password, never evicts a key, is ready when [Start]
// returns, and dies with this process, even on kill -9 (on Linux; on other systems it survives). The password is in no
// file and no argument list, because the whole configuration goes in by stdin. The process is reaped when
// [Server.Stop] returns.
//
// It does not restart a server that died, and it does not replicate. If you need that, run your own Redis.
//
// All functions and methods may be called from any goroutine.
package redisserver
