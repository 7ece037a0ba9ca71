// Package redisserver runs a real redis-server as a child process: the database of `worker -standalone` and of tests.
//
// It promises that the server listens on loopback only, wants a password, never evicts a key, has that password nowhere on disk and
// in no argument list (the whole configuration goes in by stdin), is up when [Start] returns, and dies with this process, even if
// that is killed with -9 (Linux; elsewhere it then stays behind). It is reaped when [Server.Stop] returns.
//
// It does not restart a server that died by itself, and it does not replicate: who needs that brings a Redis of their own.
//
// All functions and methods may be called from any goroutine.
package redisserver
