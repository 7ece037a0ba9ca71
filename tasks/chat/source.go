package chat

import (
	"log/slog"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// Config is what the source needs. Its zero value works and opens no local directory.
type Config struct {
	Dirs      []string         // roots of the local directories that tasks may work in, absolute
	StateDir  string           // errand's state, which may be in a blocked directory such as /var
	Heartbeat time.Duration    // interval of the comments that keep a silent stream open; 0: 15 s
	Now       func() time.Time // nil: time.Now
	Log       *slog.Logger     // nil: discard
}

// submitLimit keeps the promise of an answer within 3 s while Redis hangs.
const submitLimit = 2500 * time.Millisecond

// Source is the chat. Make it with New.
type Source struct {
	cfg         Config
	submitLimit time.Duration // only tests change it
}

var _ tasks.Source = (*Source)(nil)

// New makes the source. It cannot fail yet; the error is for later settings.
func New(cfg Config) (*Source, error) {
	if cfg.Heartbeat <= 0 {
		cfg.Heartbeat = 15 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Source{cfg: cfg, submitLimit: submitLimit}, nil
}

// Name is the prefix of the threads and the word in the IDs of the tasks that come from here.
func (s *Source) Name() string { return "chat" }
