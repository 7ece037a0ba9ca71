// Package agent runs the Claude Code CLI on a prompt, and guarantees that nothing of the run survives it.
//
// # Usage
//
// Every main function of a program that uses this package, and every TestMain, begins with [KeeperMain]: the program
// executes itself again as the keeper of each run. One [Runner] then serves the whole process:
//
//	func main() {
//		agent.KeeperMain()
//		runner, err := agent.New(agent.Config{LogDir: "logs", Credential: agent.Credential{APIKey: key}})
//		…
//		result, err := runner.Run(ctx, agent.Spec{ID: "1", Dir: clone, Profile: agent.Write, Prompt: agent.Message{Text: "Fix the test."}}, host)
//	}
//
// A [Spec] says what to run. A [Host] receives events, decides the tool calls that the policy leaves to people, and
// supplies further messages. A [Result] says how the run ended. A run is a conversation: it continues until its session
// is idle and the Host has nothing to add. The agent can be given a [Tool] of this process and an [MCPServer], an
// earlier conversation to resume, files, and the form of its answer. [Runner.Health] reports whether a run could start,
// and if not, what to do.
//
// # What the package promises
//
//   - When Run returns, no process of the run is alive, even if it daemonised itself, and all its output is in the log.
//   - If the calling process dies, even by SIGKILL, the keepers stop its runs within 8 s.
//   - Reading the CLI's output never waits for the [Host]'s decisions, for Redis or for a browser. Every line is logged
//     whole, however long. Memory is bounded for all runs of a Runner together.
//   - An error of Run means that nothing ran. How a run ended, well or badly, is in its [Result], and the first cause
//     wins: a limit, a stall, or a cause of the caller.
//   - A run is over when all its messages have been answered and no task runs in the background. A result of the CLI is
//     only the end of a turn. The answer of the run is the answers of all turns, joined.
//   - Every request of the CLI is answered, unknown ones with an error. Every request to the CLI fails at once if the
//     CLI exits.
//   - A CLI that hangs is detected: at the start, after a result, or because it does not answer a ping. The time in
//     which a person decides does not count as silence.
//   - No prompt, context, schema or credential appears in an argument list. The environment of the CLI is an
//     allow-list, and its credential for the model is valid only during the run, unless Config.Direct is set. Logs and
//     events are redacted.
//   - In a sandbox (Config.Sandbox) a run writes only to the directories of its Spec and its own directory. It sees
//     nothing of Config.Hidden and no other processes, and has no capabilities.
//   - Nothing in a directory is executed or obeyed that the caller does not trust, and nothing at all in the
//     directories above it.
//
// # What the package does not promise
//
//   - On systems other than Linux, a process that daemonises itself can outlive its run, because there is no child
//     subreaper. New logs this.
//   - If a keeper is killed with SIGKILL, the CLI dies with it. Other processes of the run are then found by the run's
//     marker in their environment (ERRAND_RUN), or, if the calling process was killed too, by [Runner.Sweep] at the
//     next start. A process that has also removed the marker escapes. In a sandbox no process escapes.
//   - A sandbox shares the network of the machine, except for runs of the Untrusted profile.
//   - The Write profile does not contain the agent: it may do everything that the user may, except for what the sandbox
//     prevents.
//   - The package has no queue: it neither repeats runs nor limits their number. [Class] says whether repeating would
//     help.
//   - JSON that the CLI splits over several lines would be logged and not understood. The CLI never does this.
//
// # Concurrency
//
// A Runner may be used by any number of goroutines. The package calls Host.Event from one goroutine at a time, in the
// order of the output; Event must not block. It calls Host.Permit, a [Tool]'s Run and a [Rule]'s Run on a new goroutine
// per call, Host.Next and Host.Idle on one goroutine each, and Spec.Checkpoint on another one. It calls none of them
// after Run has returned. docs/concurrency.md lists the goroutines of a run.
package agent
