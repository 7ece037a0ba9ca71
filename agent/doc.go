// Package agent runs the Claude Code CLI on one prompt, from start to a proven end.
//
// # Usage
//
// Every main function of a program that uses this package, and every TestMain, begins with [KeeperMain]: the program
// re-executes itself as the keeper of each run. Then one [Runner] serves the whole process:
//
//	func main() {
//		agent.KeeperMain()
//		runner, err := agent.New(agent.Config{CLI: "claude", Credential: agent.Credential{APIKey: key}, LogDir: "logs"})
//		…
//		result, err := runner.Run(ctx, agent.Spec{ID: "1", Dir: clone, Prompt: agent.Message{Text: "Fix the test."}}, host)
//	}
//
// # What is promised
//
//   - When Run returns, no process that the run started is alive, however it daemonised, and all of its output is in the log.
//   - When the calling process dies, even by SIGKILL, its runs are stopped by their keepers within 8 s.
//   - Reading the CLI's output never waits for the [Host]; a line of any length is logged whole, and memory stays bounded.
//   - The error of Run means that nothing ran. What a run came to, good or bad, is in its [Result], and the first cause wins.
//   - In a sandbox (Config.Sandbox) the run writes only to the directories of its Spec and its own, sees nothing of Config.Hidden and
//     no process outside, and has no capabilities.
//   - Nothing the caller passes as prompt, context or credential appears in an argument list; the CLI's environment is an
//     allow-list. Logs and events pass the redactor first.
//
// # What is not promised
//
//   - On systems other than Linux a process that daemonises itself may outlive its run: there is no child subreaper there.
//   - A keeper that is itself killed with SIGKILL takes the CLI with it; what tools left behind is then found by the run's
//     marker in its environment (ERRAND_RUN), so a process that also scrubbed its environment escapes. In a sandbox none does.
//   - A sandbox shares the network of the machine.
//   - The package knows no queue: it neither retries nor limits how many runs there are.
//
// # Concurrency
//
// A Runner may be used from any number of goroutines. Of a Host, Event is called from one goroutine at a time, in the order of
// the output, and must not block; Permit is called on a goroutine per request; Next and Idle on one goroutine each.
// docs/concurrency.md lists the goroutines of a run.
package agent
