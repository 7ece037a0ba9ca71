// Package agent runs the Claude Code CLI on a prompt, from start to a proven end.
//
// # Usage
//
// Every main function of a program that uses this package, and every TestMain, begins with [KeeperMain]: the program
// re-executes itself as the keeper of each run. Then one [Runner] serves the whole process:
//
//	func main() {
//		agent.KeeperMain()
//		runner, err := agent.New(agent.Config{LogDir: "logs", Credential: agent.Credential{APIKey: key}})
//		…
//		result, err := runner.Run(ctx, agent.Spec{ID: "1", Dir: clone, Profile: agent.Write, Prompt: agent.Message{Text: "Fix the test."}}, host)
//	}
//
// A [Spec] says what to run; a [Host] hears what the agent does, decides what the policy leaves to people, and has further messages;
// a [Result] says what it came to. A run is a conversation: it goes on until its session is at rest and the Host has nothing to add.
// The agent can be given [Tool]s of this process and [MCPServer]s, earlier conversations to resume or to fork, files, and the form of
// its answer. [Runner.Runs] looks at what is live, and [Runner.Health] tells whether a run could start, and if not, what to do.
//
// # What is promised
//
//   - When Run returns, no process that the run started is alive, however it daemonised, and all of its output is in the log.
//   - When the calling process dies, even by SIGKILL, its runs are stopped by their keepers within 8 s.
//   - Reading the CLI's output never waits for the [Host]'s decisions, for Redis or for a browser; a line of any length is logged whole,
//     and memory stays bounded, for all runs of a Runner together.
//   - The error of Run means that nothing ran. What a run came to, good or bad, is in its [Result], and the first cause wins: a limit, a
//     stall, a cause of the caller's.
//   - A run is over when all its messages have been taken up and answered, and nothing works in the background: a result of the CLI is
//     only the end of a turn. The joined answers of all turns are the run's answer.
//   - Every question of the CLI is answered, unknown ones with an error, and every question to it fails at once when it dies.
//   - A CLI that hangs is found: by its silence at the start, after a result or to a ping. A person's thinking time is no silence.
//   - Nothing the caller passes as prompt, context, schema or credential appears in an argument list. The CLI's environment is an
//     allow-list, and what it proves itself with to the model ends with the run, unless Config.Direct. Logs and events pass the redactor
//     first.
//   - In a sandbox (Config.Sandbox) the run writes only to the directories of its Spec and its own, sees nothing of Config.Hidden and
//     no process outside, and has no capabilities.
//   - Of a directory, nothing is executed or obeyed that the caller does not trust, and nothing at all of the directories above it.
//
// # What is not promised
//
//   - On systems other than Linux a process that daemonises itself may outlive its run: there is no child subreaper there. New logs that.
//   - A keeper that is itself killed with SIGKILL takes the CLI with it; what tools left behind is then found by the run's
//     marker in its environment (ERRAND_RUN), or, when the calling process was killed as well, by [Runner.Sweep] at the next start. So a
//     process that also scrubbed its environment escapes. In a sandbox none does.
//   - A sandbox shares the network of the machine.
//   - The Write profile is no containment: whoever may run commands may do what the user may, but for what the sandbox keeps from it.
//   - The package knows no queue: it neither repeats a run nor limits how many there are. [Class] says what repeating would be good for.
//   - JSON that the CLI split over lines would be logged and not understood; it never does.
//
// # Concurrency
//
// A Runner may be used from any number of goroutines. Of a Host, Event is called from one goroutine at a time, in the order of
// the output, and must not block; Permit is called on a goroutine per request; Next and Idle on one goroutine each, and a
// Spec's Checkpoint on another. A [Tool]'s Run, or that of a [Rule], is called on a goroutine per call. None of them is called any more
// once Run has returned. docs/concurrency.md lists the goroutines of a run.
package agent
