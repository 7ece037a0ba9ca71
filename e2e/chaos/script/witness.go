package script

// A process of a run is alive for as long as its connection to the witness is open: the kernel closes it, however the process ends.
// Both sides write one JSON object per line; the process speaks first, and every line of its gets an answer.

// AddressFile holds the witness's address. It lies beside the CLI's executable, because the CLI's environment is an allow-list.
const AddressFile = "witness"

// The parts that a process plays.
const (
	CLI  = "cli"
	Tool = "tool" // what a CLI left running
)

// Word is what a process tells: who it is in the first line, and in each further one which message it has taken up.
type Word struct {
	Role   string `json:"role,omitempty"`
	Pid    int    `json:"pid,omitempty"`
	Parent int    `json:"parent,omitempty"` // of a CLI the keeper
	Run    string `json:"run,omitempty"`    // ERRAND_RUN
	Dir    string `json:"dir,omitempty"`    // working directory

	Token   string `json:"token,omitempty"`
	Message string `json:"message,omitempty"` // its uuid
}

// Reply answers a Word when the witness has noted it.
type Reply struct {
	Before int `json:"before"` // how often the token had been taken up before
}
