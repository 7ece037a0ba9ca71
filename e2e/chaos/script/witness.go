package script

// A process of a run is alive as long as its connection to the witness is open, because the kernel closes the
// connection with the process. Both sides write one JSON object per line. The process writes first, and each of its
// lines gets a reply.

// AddressFile holds the witness's address. It is next to the CLI's executable, because the CLI's environment is an
// allow-list.
const AddressFile = "witness"

// ProcDir is the harness's /proc, next to AddressFile: in a container processes have other IDs.
const ProcDir = "proc"

// The parts that a process plays.
const (
	CLI  = "cli"
	Tool = "tool" // a process that a CLI left running
)

// Word is a line of a process: its identity in the first line, and a received message in each further one.
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
	Before int `json:"before"` // number of earlier receptions of the token
}
