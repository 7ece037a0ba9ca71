package policy

// The actions.
var (
	Ask       Action = ask       // something in a chat, and be heard on GitHub
	Control   Action = control   // a task in a chat: stop it, retry it, approve what it does
	Work      Action = work      // have a run do it
	Steer     Action = steer     // answer a question of a run
	MarkReady Action = markReady // a draft of errand's
	Announce  Action = post      // have results posted in a channel
	Link      Action = link      // an account on the forge to one in a chat

	See     Action = Needs(Viewer)   // a task, at the front door
	Use     Action = Needs(User)     // it, also by answers
	Stop    Action = stop            // a task there
	Take    Action = take            // a task over, with its conversation
	Approve Action = approve         // what a task does, there
	Operate Action = Needs(Operator) // retry tasks there, and change what runs
	Start   Action = start           // a task there

	Request Action = request // something there
	Command Action = command // there what is for people: stop a run, answer it, have work on an issue begun
	Fork    Action = fork    // work in a pull request from a fork
)
